"""Light replacements for names of `typing`, for modules that every `jobmeter run` imports.

Type checkers see the real names. Importing `typing` and making NamedTuples with it takes a tenth of the time that a run
needs to start, and nothing of it is used at run time. `collections.namedtuple`, which compiles code for each type,
takes a thirtieth.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO as IO
    from typing import Any as Any
    from typing import NamedTuple as NamedTuple
    from typing import NoReturn as NoReturn
    from typing import Protocol as Protocol
    from typing import Union as Union
    from typing import cast as cast
else:
    from collections import _tuplegetter
    from types import FunctionType

    class _Tuple(tuple):
        """The methods of every NamedTuple; they behave like those of `collections.namedtuple`."""

        __slots__ = ()

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes):
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"Got unexpected field names: {list(changes)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self))

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._asdict().items())})"

        def __getnewargs__(self):
            return tuple(self)

    _constructors = {}  # by the number of fields

    def _constructor(fields, defaults):
        """The `__new__` of a type with these fields: compiled once for each number of them, then given their names."""
        if len(fields) not in _constructors:
            names = ", ".join(f"_{number}" for number in range(len(fields)))
            _constructors[len(fields)] = eval(f"lambda _cls, {names}: _new(_cls, ({names},))", {"_new": tuple.__new__})
        template = _constructors[len(fields)]
        code = template.__code__.replace(co_name="__new__", co_varnames=("_cls", *fields))
        return FunctionType(code, template.__globals__, "__new__", defaults)

    class _NamedTupleType(type):
        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            annotations = namespace["__annotations__"]
            fields = tuple(annotations)
            defaults = {field: namespace[field] for field in fields if field in namespace}
            made = {**namespace, "__slots__": (), "_fields": fields, "__match_args__": fields}
            made["_field_defaults"] = defaults
            made["__new__"] = new = _constructor(fields, tuple(defaults.values()))
            new.__qualname__, new.__annotations__ = f"{name}.__new__", annotations
            made |= {field: _tuplegetter(number, "") for number, field in enumerate(fields)}
            return type(name, (_Tuple,), made)

    class NamedTuple(metaclass=_NamedTupleType):
        pass

    class _Erased:
        """Stands for a type in an expression that only a type checker reads."""

        def __getitem__(self, item):
            return self

    IO = Any = NoReturn = Union = _Erased()

    class Protocol:
        _is_protocol = True

    def cast(kind, value):
        return value

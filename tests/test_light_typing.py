"""NamedTuples made without `typing` behave as those of `typing`."""

from __future__ import annotations

import inspect
import pickle
import typing

import pytest

from jobmeter import light_typing


class Light(light_typing.NamedTuple):
    """A point."""

    x: int
    y: float = 2.5
    name: str | None = None

    @property
    def total(self) -> float:
        return self.x + self.y

    def moved(self, by: int) -> Light:
        return self._replace(x=self.x + by)


class Real(typing.NamedTuple):
    """A point."""

    x: int
    y: float = 2.5
    name: str | None = None


def test_fields_defaults_and_documentation_are_those_of_typing() -> None:
    assert Real._fields == Light._fields
    assert Real._field_defaults == Light._field_defaults
    assert (Real.__name__, "Light") == ("Real", Light.__name__)
    assert Real.__doc__ == Light.__doc__
    assert Real.__module__ == Light.__module__
    assert inspect.signature(Real).parameters.keys() == inspect.signature(Light).parameters.keys()
    assert typing.get_type_hints(Real) == typing.get_type_hints(Light)


def test_values_are_those_of_typing() -> None:
    assert tuple(Real(1, name="a")) == tuple(Light(1, name="a")) == (1, 2.5, "a")
    assert Light(1) == (1, 2.5, None)
    assert repr(Light(1)) == "Light(x=1, y=2.5, name=None)"
    assert Light(3, 4) == pickle.loads(pickle.dumps(Light(3, 4)))


def test_values_are_replaced_listed_and_matched_as_those_of_typing() -> None:
    assert Light(1)._asdict() == Real(1)._asdict()
    assert tuple(Light._make([1, 2, "a"])) == tuple(Real._make([1, 2, "a"]))
    assert tuple(Light(1)._replace(name="b", y=0)) == tuple(Real(1)._replace(name="b", y=0))
    match Light(1, 2):
        case Light(x, y):
            assert (1, 2) == (x, y)
    for kind in (Light, Real):
        with pytest.raises(ValueError, match="unexpected field names: \\['z'\\]"):
            kind(1)._replace(z=3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="Expected 3 arguments, got 2"):
            kind._make([1, 2])
        with pytest.raises(TypeError, match="__new__\\(\\) got an unexpected keyword argument 'z'"):
            kind(1, z=2)  # type: ignore[call-arg]


def test_types_with_as_many_fields_have_their_own_names_for_them() -> None:
    class Other(light_typing.NamedTuple):
        one: int
        two: int = 2
        three: int = 3

    assert ((1, 2, 3), (5, 2, 4)) == (Other(one=1), Other(three=4, one=5))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Light()  # type: ignore[call-arg]


def test_methods_and_properties_stay() -> None:
    assert Light(1).total == 3.5
    assert Light(1).moved(2) == Light(3)


@pytest.mark.parametrize("arguments", [(), (1, 2, "a", 4)])
def test_a_wrong_number_of_values_is_an_error(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        Light(*arguments)  # type: ignore[arg-type]


def test_fields_cannot_be_assigned() -> None:
    with pytest.raises(AttributeError):
        Light(1).x = 2  # type: ignore[misc]

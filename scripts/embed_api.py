"""Writes the signatures and docstrings of the public names into docs/api.md, after its `<!-- api -->` mark."""

from __future__ import annotations

import enum
import inspect
from pathlib import Path
from typing import Any

import jobmeter

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
_MARK = "<!-- api -->\n"
_WIDTH = 100


def embedded(text: str) -> str:
    """The page with its reference brought up to date."""
    introduction, mark, _ = text.partition(_MARK)
    return introduction + mark + "\n" + "\n".join(map(_section, _names()))


def _names() -> list[str]:
    """Functions first, then classes, each by name."""
    names = [
        n for n in jobmeter.__all__ if inspect.isclass(getattr(jobmeter, n)) or inspect.isfunction(getattr(jobmeter, n))
    ]
    return sorted(names, key=lambda name: (inspect.isclass(getattr(jobmeter, name)), name))


def _section(name: str) -> str:
    thing: Any = getattr(jobmeter, name)
    lines = [f"## {name}", "", *_fenced(_signature(name, thing)), "", _docstring(thing), ""]
    if inspect.isclass(thing):
        lines += _members(name, thing)
    return "\n".join(lines)


def _members(owner: str, thing: Any) -> list[str]:
    if issubclass(thing, enum.Enum):
        return [*(f"- `{owner}.{member.name}`" for member in thing), ""]
    lines = []
    for name, member in vars(thing).items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        function = member.fget if isinstance(member, property) else member
        shown = f"{owner}.{name}" if isinstance(member, property) else _signature(f"{owner}.{name}", function)
        lines += [*_fenced(shown), "", _docstring(function), ""] if _docstring(function) else [*_fenced(shown), ""]
    return lines


def _signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing) and (issubclass(thing, (enum.Enum, Exception)) or getattr(thing, "_is_protocol", False)):
        return f"class {name}"
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    every = [each for each in signature.parameters.values() if each.name != "self"]
    parameters = list(map(_parameter, every))
    keyword_only = [index for index, each in enumerate(every) if each.kind is each.KEYWORD_ONLY]
    if keyword_only:
        parameters.insert(keyword_only[0], "*")
    given_back = "" if inspect.isclass(thing) else f" -> {signature.return_annotation}"
    on_one_line = f"{name}({', '.join(parameters)}){given_back}"
    if len(on_one_line) <= _WIDTH:
        return on_one_line
    return "\n".join([f"{name}(", *(f"    {each}," for each in parameters), f"){given_back}"])


def _parameter(parameter: inspect.Parameter) -> str:
    stars = "*" * ((parameter.kind is parameter.VAR_POSITIONAL) + 2 * (parameter.kind is parameter.VAR_KEYWORD))
    annotation = getattr(parameter.annotation, "__forward_arg__", parameter.annotation)  # a ForwardRef, in a NamedTuple
    default = "" if parameter.default is parameter.empty else f" = {_value(parameter.default)}"
    return f"{stars}{parameter.name}: {annotation}{default}"


def _value(value: object) -> str:
    return str(value) if isinstance(value, enum.Enum) else repr(value)


def _docstring(thing: Any) -> str:
    return inspect.getdoc(thing) or "" if "__doc__" in vars(thing) or not inspect.isclass(thing) else ""


def _fenced(text: str) -> list[str]:
    return ["```text", text, "```"]


if __name__ == "__main__":
    PAGE.write_text(embedded(PAGE.read_text()))

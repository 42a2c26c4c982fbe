"""The types of a spec's fields: how each parses the text that a person wrote, and its message for an invalid one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar, Union

from pydantic import BeforeValidator, Discriminator, Field, StringConstraints, Tag
from pydantic_core import PydanticCustomError

from jobmeter.errors import UsageError
from jobmeter.model import Status
from jobmeter.settings import signed_whole_number, whole_number

_T = TypeVar("_T")
_MOST_RETRIES = 1000
_RETRIED = (Status.OOM.value, Status.TIMEOUT.value)


def reading(parse: Callable[[str], _T]) -> BeforeValidator:
    """A validator that reads a text with one of jobmeter's own parsers; the parser's error is the message."""

    def read(value: Any) -> _T:
        try:
            return parse(_text(value))
        except UsageError as error:
            raise wrong(str(error)) from None

    return BeforeValidator(read)


def wrong(message: str) -> PydanticCustomError:
    # The message is passed as a value, so that braces in it are not placeholders.
    return PydanticCustomError("wrong", "{message}", {"message": message})


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong(f"must be one value, and here is {kind_of(value)}")
    return value


def kind_of(value: Any) -> str:
    """The type of a value, in words."""
    if value is None:
        return "nothing"
    return {"dict": "a mapping", "list": "a list"}.get(type(value).__name__, "a text")


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 1 <= factor <= 1000:
        raise UsageError(f"{text!r} is not a factor from 1 to 1000")
    return factor


def _truth(text: str) -> bool:
    truth = _TRUTH.get(text.lower())
    if truth is None:
        raise UsageError(f"{text!r} is neither true nor false")
    return truth


_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _shell(text: str) -> bool | str:
    return _TRUTH.get(text.lower(), text)


def _one_or_more(value: Any) -> Any:
    """A single text as a list of one."""
    return [value] if isinstance(value, str) else value


def _snake(value: Any) -> Any:
    """`TimeSeries` is another spelling of `time_series`."""
    return {"TimeSeries": "time_series", "Summary": "summary"}.get(value, value) if isinstance(value, str) else value


def _exit_code(text: str) -> int:
    code = signed_whole_number(text)
    if not 1 <= code <= 255:
        raise UsageError(f"{text!r} is not an exit code from 1 to 255")
    return code


def _script(text: str) -> str:
    if not text.strip():
        raise UsageError("the script is empty")
    if "\0" in text:
        raise UsageError("has a NUL character")
    return text


def _empty(value: Any) -> Any:
    return "" if value is None else value


def _retry_cause(text: str) -> str | int:
    if text.lower() in _RETRIED:
        return text.lower()
    if re.fullmatch(r"\d{1,9}", text) and 1 <= int(text) <= 255:
        return int(text)
    raise UsageError(f"{text!r} is neither oom nor timeout nor an exit code from 1 to 255")


Text = Annotated[str, StringConstraints(max_length=1_000_000)]
Script = Annotated[Text, reading(_script)]
Truth = Annotated[bool, reading(_truth)]
Whole = Annotated[int, reading(signed_whole_number)]
Factor = Annotated[float, reading(_factor)]
Texts = Annotated[list[Text], BeforeValidator(_one_or_more)]
TextMap = dict[str, Annotated[Text, BeforeValidator(_empty)]]
Shell = Annotated[Union[bool, str], reading(_shell)]
Granularity = Annotated[Literal["summary", "time_series"], BeforeValidator(_snake)]
Retries = Annotated[int, reading(whole_number), Field(le=_MOST_RETRIES)]
RetryCauses = Annotated[list[Annotated[Union[str, int], reading(_retry_cause)]], BeforeValidator(_one_or_more)]
ExitCodes = Annotated[list[Annotated[int, reading(_exit_code)]], BeforeValidator(_one_or_more)]


def either(one: Any, other: Any, other_kind: type) -> Any:
    """One of two types, chosen by the type of the value, so that only errors of the chosen one are reported."""
    return Annotated[
        Union[Annotated[one, Tag("one")], Annotated[other, Tag("other")]],
        Discriminator(lambda value: "other" if isinstance(value, other_kind) else "one"),
    ]

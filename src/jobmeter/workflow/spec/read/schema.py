"""The schema of a spec. Values come as the texts that people wrote; each field says what it takes them for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from jobmeter.errors import UsageError
from jobmeter.model import Status
from jobmeter.settings import (
    positive_bytes,
    positive_number,
    positive_seconds,
    sampling_interval,
    signed_whole_number,
    whole_number,
)

_T = TypeVar("_T")
MOST_RETRIES = 1000
_LEAST_MEMORY = 1000
"""Bytes. A smaller number is one whose unit was forgotten."""


def _reading(parse: Callable[[str], _T]) -> BeforeValidator:
    """Reads a text by one of jobmeter's own parsers; its error is the message."""

    def read(value: Any) -> _T:
        try:
            return parse(_text(value))
        except UsageError as error:
            raise wrong(str(error)) from None

    return BeforeValidator(read)


def wrong(message: str) -> PydanticCustomError:
    # The message goes as a value: braces in it are no placeholders.
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


def memory_amount(text: str) -> int:
    amount = positive_bytes(text)
    if amount < _LEAST_MEMORY and text.strip().isdigit():
        raise UsageError(f"{text!r} is a number of bytes, too few for any program. Write {text}g or {text}m.")
    return amount


def _truth(text: str) -> bool:
    truth = _TRUTH.get(text.lower())
    if truth is None:
        raise UsageError(f"{text!r} is neither true nor false")
    return truth


_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _shell(text: str) -> bool | str:
    return _TRUTH.get(text.lower(), text)


def _one_or_more(value: Any) -> Any:
    """A single text where a list may stand."""
    return [value] if isinstance(value, str) else value


def _times(value: Any) -> Any:
    """`retry: 2` means two more attempts."""
    return {"times": value} if isinstance(value, str) else value


def _empty(value: Any) -> Any:
    return "" if value is None else value


Text = Annotated[str, StringConstraints(max_length=1_000_000)]
Truth = Annotated[bool, _reading(_truth)]
Whole = Annotated[int, _reading(signed_whole_number)]
Factor = Annotated[float, _reading(_factor)]
Texts = Annotated[list[Text], BeforeValidator(_one_or_more)]
TextMap = dict[str, Annotated[Text, BeforeValidator(_empty)]]


def _either(one: Any, other: Any, other_kind: type) -> Any:
    """One of two types, chosen by the value's own, so that only the errors of that one are reported."""
    return Annotated[
        Union[Annotated[one, Tag("one")], Annotated[other, Tag("other")]],
        Discriminator(lambda value: "other" if isinstance(value, other_kind) else "one"),
    ]


class Model(BaseModel):
    """What all parts of a spec have in common: no unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nothing(cls, value: Any) -> Any:
        """A field without a value is ignored: its default counts."""
        if not isinstance(value, dict):
            raise wrong(f"must be a mapping, and here is {kind_of(value)}")
        if None in value.values():
            return {key: inner for key, inner in value.items() if inner is not None}
        return value


class Sizes(Model):
    """What is requested."""

    cpus: Annotated[float | None, _reading(positive_number)] = None
    num_cpus: Annotated[float | None, _reading(positive_number)] = None
    gpus: Annotated[int | None, _reading(whole_number)] = None
    num_gpus: Annotated[int | None, _reading(whole_number)] = None
    memory: Annotated[int | None, _reading(memory_amount)] = None
    runtime: Annotated[float | None, _reading(positive_seconds)] = None

    @model_validator(mode="after")
    def _one_spelling(self) -> Sizes:
        for short, long in (("cpus", "num_cpus"), ("gpus", "num_gpus")):
            if getattr(self, short) is not None and getattr(self, long) is not None:
                raise wrong(f"{short} and {long} are the same: keep one of them")
        return self


class NamedSizes(Sizes):
    """What is requested, under a name that jobs refer to."""

    name: Text


class Grow(Model):
    """How much more the next attempt requests."""

    memory: Factor = 1.5
    runtime: Factor = 1.5


_RETRIED = (Status.OOM.value, Status.TIMEOUT.value)


def _retry_cause(text: str) -> str | int:
    if text.lower() in _RETRIED:
        return text.lower()
    if re.fullmatch(r"\d{1,9}", text) and 1 <= int(text) <= 255:
        return int(text)
    raise UsageError(f"{text!r} is neither oom nor timeout nor an exit code from 1 to 255")


class RetrySpec(Model):
    """When a job is tried again."""

    times: Annotated[int, _reading(whole_number), Field(le=MOST_RETRIES)] = 0
    on: Annotated[list[Annotated[Union[str, int], _reading(_retry_cause)]], BeforeValidator(_one_or_more)] = [
        Status.OOM,
        Status.TIMEOUT,
    ]
    grow: Grow = Grow()


class ContainerSpec(Model):
    """The container a job runs in."""

    image: Text
    mounts: list[_either(Text, dict[str, Text], dict)] | None = None  # type: ignore[valid-type]
    volumes: list[_either(Text, dict[str, Text], dict)] | None = None  # type: ignore[valid-type]
    env: TextMap | None = None
    user: Text | None = None
    network: Text | None = None
    entrypoint: Texts | None = None
    engine: Text | None = None
    pull: Text | None = None
    gpus: Text | None = None
    mount_cwd: Truth | None = None

    @model_validator(mode="after")
    def _one_spelling(self) -> ContainerSpec:
        if self.mounts is not None and self.volumes is not None:
            raise wrong("mounts and volumes are the same: keep one of them")
        return self


class JobSpec(Model):
    """One job, or a sweep of them."""

    name: Text
    command: _either(Text, list[Text], list)  # type: ignore[valid-type]
    resource_requirements: _either(Text, Sizes, dict) | None = None  # type: ignore[valid-type]
    blocked_by: Texts | None = None
    depends_on: Texts | None = None
    inputs: Texts = []
    outputs: Texts = []
    env: TextMap = {}
    cwd: Text | None = None
    shell: Annotated[Union[bool, str], _reading(_shell)] = True
    parameters: dict[str, _either(Text, list[Text], list)] = {}  # type: ignore[valid-type]
    parameter_mode: Literal["product", "zip"] = "product"
    retry: Annotated[RetrySpec, BeforeValidator(_times)] = RetrySpec()
    priority: Whole = 0
    labels: TextMap = {}
    container: _either(Text, ContainerSpec, dict) | None = None  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _one_spelling(self) -> JobSpec:
        if self.blocked_by is not None and self.depends_on is not None:
            raise wrong("blocked_by and depends_on are the same: keep one of them")
        return self


class MonitorSpec(Model):
    """What is measured, and how much of it is stored."""

    enabled: Truth = True
    granularity: Literal["summary", "time_series"] = "summary"
    sample_interval_seconds: Annotated[float, _reading(sampling_interval)] = 5.0
    generate_plots: Truth = False


class Spec(Model):
    """A whole file. Keys that begin with `x-` are the writer's own, for example to keep anchors there."""

    name: Text | None = None
    description: Text = ""
    user: Text = ""
    resource_monitor: MonitorSpec = MonitorSpec()
    enforce: Truth = False
    jobs: list[JobSpec]
    resource_requirements: list[NamedSizes] = []

    @model_validator(mode="before")
    @classmethod
    def _leave_out_own_keys(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: inner for key, inner in value.items() if not key.startswith("x-")}
        return value

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
    cpu_number,
    positive_bytes,
    positive_number,
    positive_seconds,
    positive_whole_number,
    sampling_interval,
    signed_whole_number,
    whole_number,
)

_T = TypeVar("_T")
MOST_RETRIES = 1000


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


def _snake(value: Any) -> Any:
    """`TimeSeries` is another spelling of `time_series`."""
    return {"TimeSeries": "time_series", "Summary": "summary"}.get(value, value) if isinstance(value, str) else value


def _exit_code(text: str) -> int:
    code = signed_whole_number(text)
    if not 1 <= code <= 255:
        raise UsageError(f"{text!r} is not an exit code from 1 to 255")
    return code


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

    num_nodes: Annotated[int | None, _reading(positive_whole_number)] = None
    cpus: Annotated[float | None, _reading(cpu_number)] = None
    num_cpus: Annotated[float | None, _reading(cpu_number)] = None
    gpus: Annotated[int | None, _reading(whole_number)] = None
    num_gpus: Annotated[int | None, _reading(whole_number)] = None
    memory: Annotated[int | None, _reading(positive_bytes)] = None
    runtime: Annotated[float | None, _reading(positive_seconds)] = None
    custom: dict[str, Annotated[float, _reading(positive_number)]] | None = None

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


# pydantic copies a default that can change, for each job: values are shared instead.
_GROW = Grow()
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
    grow: Grow = Field(default_factory=lambda: _GROW)


_NO_RETRY = RetrySpec()


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


class Parameterised(Model):
    """What one entry becomes several of."""

    parameters: dict[str, _either(Text, list[Text], list)] = Field(default_factory=dict)  # type: ignore[valid-type]
    parameter_mode: Literal["product", "zip"] = "product"
    use_parameters: Texts = Field(default_factory=list)


class FileSpec(Parameterised):
    """A file that jobs refer to by name."""

    name: Text
    path: Text
    identifier: Text | None = None
    st_mtime: Text | None = None


class UserDataSpec(Parameterised):
    """A small value that jobs hand to each other."""

    name: Text
    data: Any = None
    is_ephemeral: Truth = False


class FailureRuleSpec(Model):
    """What happens after some exit codes."""

    exit_codes: Annotated[list[Annotated[int, _reading(_exit_code)]], BeforeValidator(_one_or_more)] = Field(
        default_factory=list
    )
    match_all_exit_codes: Truth = False
    recovery_script: Text | None = None
    max_retries: Annotated[int, _reading(whole_number), Field(le=MOST_RETRIES)] = 3

    @model_validator(mode="after")
    def _matches_something(self) -> FailureRuleSpec:
        if not self.exit_codes and not self.match_all_exit_codes:
            raise wrong("has neither exit_codes nor match_all_exit_codes: it would never apply")
        return self


class FailureHandlerSpec(Model):
    """What happens when a job fails that names it."""

    name: Text
    rules: list[FailureRuleSpec]


class ActionSpec(Model):
    """What happens when the workflow, or some of its jobs, begin or end."""

    trigger_type: Literal["on_workflow_start", "on_workflow_complete", "on_jobs_ready", "on_jobs_complete"]
    action_type: Literal["run_commands", "schedule_nodes"]
    name: Text | None = None
    jobs: Texts = Field(default_factory=list)
    job_name_regexes: Texts = Field(default_factory=list)
    commands: Texts = Field(default_factory=list)
    persistent: Truth = False
    scheduler: Text | None = None
    scheduler_type: Text | None = None
    num_allocations: Whole | None = None
    start_one_worker_per_node: Truth | None = None
    max_parallel_jobs: Whole | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> ActionSpec:
        if self.action_type == "run_commands" and not self.commands:
            raise wrong("run_commands needs `commands`")
        of_jobs = self.trigger_type in ("on_jobs_ready", "on_jobs_complete")
        if of_jobs and not (self.jobs or self.job_name_regexes):
            raise wrong(f"{self.trigger_type} needs `jobs` or `job_name_regexes`")
        return self


class SlurmSchedulerSpec(Model):
    """How nodes are requested of Slurm."""

    name: Text | None = None
    account: Text | None = None
    partition: Text | None = None
    nodes: Text | None = None
    walltime: Text | None = None
    mem: Text | None = None
    gres: Text | None = None
    qos: Text | None = None
    ntasks_per_node: Text | None = None
    tmp: Text | None = None
    extra: Text | None = None
    serialize_allocations: Text | None = None


class JobSpec(Parameterised):
    """One job, or a sweep of them."""

    name: Text
    command: _either(Text, list[Text], list)  # type: ignore[valid-type]
    invocation_script: Text | None = None
    resource_requirements: _either(Text, Sizes, dict) | None = None  # type: ignore[valid-type]
    failure_handler: Text | None = None
    scheduler: Text | None = None
    cancel_on_blocking_job_failure: Truth = True
    supports_termination: Truth | None = None
    blocked_by: Texts | None = None
    depends_on: Texts | None = None
    depends_on_regexes: Texts = Field(default_factory=list)
    inputs: Texts = Field(default_factory=list)
    outputs: Texts = Field(default_factory=list)
    input_files: Texts = Field(default_factory=list)
    input_file_regexes: Texts = Field(default_factory=list)
    output_files: Texts = Field(default_factory=list)
    output_file_regexes: Texts = Field(default_factory=list)
    input_user_data: Texts = Field(default_factory=list)
    input_user_data_regexes: Texts = Field(default_factory=list)
    output_user_data: Texts = Field(default_factory=list)
    output_user_data_regexes: Texts = Field(default_factory=list)
    env: TextMap = Field(default_factory=dict)
    cwd: Text | None = None
    shell: Annotated[Union[bool, str], _reading(_shell)] = True
    retry: Annotated[RetrySpec, BeforeValidator(_times)] = Field(default_factory=lambda: _NO_RETRY)
    priority: Whole = 0
    labels: TextMap = Field(default_factory=dict)
    container: _either(Text, ContainerSpec, dict) | None = None  # type: ignore[valid-type]
    stdio: Any = None

    @model_validator(mode="after")
    def _one_spelling(self) -> JobSpec:
        if self.blocked_by is not None and self.depends_on is not None:
            raise wrong("blocked_by and depends_on are the same: keep one of them")
        if self.invocation_script is not None and (self.container is not None or self.shell is False):
            other = "container" if self.container is not None else "shell: false"
            raise wrong(f"invocation_script and {other} do not go together: a shell starts the script with the command")
        return self


class MonitorSpec(Model):
    """What is measured, and how much of it is stored."""

    enabled: Truth = True
    granularity: Annotated[Literal["summary", "time_series"], BeforeValidator(_snake)] = "summary"
    sample_interval_seconds: Annotated[float, _reading(sampling_interval)] = 5.0
    generate_plots: Truth = False


class Spec(Model):
    """A whole file. Keys that begin with `x-` are the writer's own, for example to keep anchors there."""

    name: Text | None = None
    description: Text = ""
    user: Text = ""
    project: Text = ""
    metadata: Any = None
    parameters: dict[str, _either(Text, list[Text], list)] = Field(default_factory=dict)  # type: ignore[valid-type]
    variables: TextMap = Field(default_factory=dict)
    env: TextMap = Field(default_factory=dict)
    resource_monitor: MonitorSpec = MonitorSpec()
    enforce: Truth = False
    jobs: list[JobSpec]
    files: list[FileSpec] = Field(default_factory=list)
    user_data: list[UserDataSpec] = Field(default_factory=list)
    resource_requirements: list[NamedSizes] = Field(default_factory=list)
    failure_handlers: list[FailureHandlerSpec] = Field(default_factory=list)
    actions: list[ActionSpec] = Field(default_factory=list)
    jobs_sort_method: Literal["none", "gpus_runtime_memory", "gpus_memory_runtime"] = "none"
    slurm_schedulers: list[SlurmSchedulerSpec] = Field(default_factory=list)
    slurm_defaults: dict[str, Any] = Field(default_factory=dict)
    use_pending_failed: Truth = False
    compute_node_expiration_buffer_seconds: Any = None
    compute_node_wait_for_new_jobs_seconds: Any = None
    compute_node_ignore_workflow_completion: Any = None
    compute_node_wait_for_healthy_database_minutes: Any = None
    execution_config: Any = None
    enable_ro_crate: Any = None
    access_groups: Any = None

    @model_validator(mode="before")
    @classmethod
    def _leave_out_own_keys(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: inner for key, inner in value.items() if not key.startswith("x-")}
        return value


WITHOUT_EFFECT = (
    "use_pending_failed",
    "compute_node_expiration_buffer_seconds",
    "compute_node_wait_for_new_jobs_seconds",
    "compute_node_ignore_workflow_completion",
    "compute_node_wait_for_healthy_database_minutes",
    "execution_config",
    "enable_ro_crate",
    "access_groups",
)
"""Fields of a spec that say how to run a server and its workers, of which there are none here."""

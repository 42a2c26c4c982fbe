"""The schema of a spec: which parts it has, their fields, and what does not go together."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from jobmeter.model import Status
from jobmeter.settings import (
    cpu_number,
    positive_bytes,
    positive_number,
    positive_seconds,
    positive_whole_number,
    sampling_interval,
    whole_number,
)
from jobmeter.workflow.spec.read.field_types import (
    ExitCodes,
    Factor,
    Granularity,
    Retries,
    RetryCauses,
    Script,
    Shell,
    Text,
    TextMap,
    Texts,
    Truth,
    Whole,
    either,
    kind_of,
    reading,
    wrong,
)


class Model(BaseModel):
    """What all parts of a spec have in common: no unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_fields(cls, value: Any) -> Any:
        """Ignore fields without a value: their defaults apply."""
        if not isinstance(value, dict):
            raise wrong(f"must be a mapping, and here is {kind_of(value)}")
        if None in value.values():
            return {key: inner for key, inner in value.items() if inner is not None}
        return value


class Sizes(Model):
    """What is requested."""

    num_nodes: Annotated[int | None, reading(positive_whole_number)] = None
    cpus: Annotated[float | None, reading(cpu_number)] = None
    num_cpus: Annotated[float | None, reading(cpu_number)] = None
    gpus: Annotated[int | None, reading(whole_number)] = None
    num_gpus: Annotated[int | None, reading(whole_number)] = None
    memory: Annotated[int | None, reading(positive_bytes)] = None
    runtime: Annotated[float | None, reading(positive_seconds)] = None
    custom: dict[str, Annotated[float, reading(positive_number)]] | None = None

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


# pydantic copies a mutable default for each job; with a factory, all jobs share one value.
_GROW = Grow()


class RetrySpec(Model):
    """When a job is tried again."""

    times: Retries = 0
    on: RetryCauses = [Status.OOM, Status.TIMEOUT]
    grow: Grow = Field(default_factory=lambda: _GROW)


_NO_RETRY = RetrySpec()


def _times(value: Any) -> Any:
    """`retry: 2` means two more attempts."""
    return {"times": value} if isinstance(value, str) else value


class ContainerSpec(Model):
    """The container a job runs in."""

    image: Text
    mounts: list[either(Text, dict[str, Text], dict)] | None = None  # type: ignore[valid-type]
    volumes: list[either(Text, dict[str, Text], dict)] | None = None  # type: ignore[valid-type]
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
    """The parameters with which one entry becomes several."""

    parameters: dict[str, either(Text, list[Text], list)] = Field(default_factory=dict)  # type: ignore[valid-type]
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

    exit_codes: ExitCodes = Field(default_factory=list)
    match_all_exit_codes: Truth = False
    recovery_script: Script | None = None
    max_retries: Retries = 3

    @model_validator(mode="after")
    def _matches_something(self) -> FailureRuleSpec:
        if not self.exit_codes and not self.match_all_exit_codes:
            raise wrong("has neither exit_codes nor match_all_exit_codes: it would never apply")
        return self


class FailureHandlerSpec(Model):
    """What happens when a job fails that names this handler."""

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
    def _check_complete(self) -> ActionSpec:
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
    command: either(Text, list[Text], list)  # type: ignore[valid-type]
    invocation_script: Text | None = None
    resource_requirements: either(Text, Sizes, dict) | None = None  # type: ignore[valid-type]
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
    shell: Shell = True
    retry: Annotated[RetrySpec, BeforeValidator(_times)] = Field(default_factory=lambda: _NO_RETRY)
    priority: Whole = 0
    labels: TextMap = Field(default_factory=dict)
    container: either(Text, ContainerSpec, dict) | None = None  # type: ignore[valid-type]
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
    granularity: Granularity = "summary"
    sample_interval_seconds: Annotated[float, reading(sampling_interval)] = 5.0
    generate_plots: Truth = False


class Spec(Model):
    """A whole file. Keys that begin with `x-` are ignored: an author may use them, for example for anchors."""

    name: Text | None = None
    description: Text = ""
    user: Text = ""
    project: Text = ""
    metadata: Any = None
    parameters: dict[str, either(Text, list[Text], list)] = Field(default_factory=dict)  # type: ignore[valid-type]
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
"""Fields of a spec that configure a server and its workers, which jobmeter does not have."""

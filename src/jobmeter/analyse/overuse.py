"""The rule of over-use: whether a run used more than it requested.

`check`, `show`, the summaries of `run` and of workflows, and `size` all use `judge`; `store.query.overuse` selects in
SQL a superset of the runs that `judge` finds. A run used more than it requested of

    memory    when its peak is above the request by 1 % or more, or it ran out of the memory that it requested
    runtime   when its wall time is above the request by 1 % or more, or it was stopped there
    GPUs      when it had processes on more GPUs than it requested
    CPUs      when its mean or a peak is above the request by more than the error of CPU time figures, and the kernel
              did not enforce the request as a limit
"""

from __future__ import annotations

from math import ceil

from jobmeter.analyse.resource import CPU, RESOURCES, Resource
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.light_typing import NamedTuple
from jobmeter.model import Quality

LEAST_OVER = 1.0
"""Percent above the request from which on usage is over-use; `check --min-over` sets another."""
SHORTEST_OVER = 0.1
"""Seconds of CPU time above the request; less comes from the start and the end of a run, not from its work."""
MEAN_OVER = 1.02
"""Sources of CPU time agree to within 2 %: a mean that is closer to the request is not above it."""
PEAK_OVER = 1.1
"""A CPU limit grants its quota every 100 ms: the second of a peak may contain eleven quotas instead of ten."""
TICK_LAG = 5.0
"""Percent of one CPU by which a peak may be too high in addition, for each requested CPU."""
_SPAN = 1.0
"""Seconds: the least time that a peak of CPU is taken over (`collectors.rate`)."""
_OWN_LIMIT = 0.8
"""Share of the request. A run that ended at a limit with an exact peak below this met another limit."""


class Verdict(NamedTuple):
    """What a run used of one resource, compared with what it requested."""

    resource: Resource
    requested: float  # in the unit of `used`
    used: float
    at_least: bool  # it used that or more
    is_over: bool
    cause: str | None  # how the run ended, if it met its limit

    @property
    def percent(self) -> float:
        """How much more was used than requested; negative when less."""
        return percent_over(self.used, self.requested)


def judge(run: StoredRun, resource: Resource, min_over: float = LEAST_OVER) -> Verdict | None:
    """Whether the run used more of the resource than it requested; None if either is not known of this run alone."""
    amount = run.get(resource.requested)
    if not amount:
        return None
    used, requested = used_amount(run, resource), amount * resource.each
    if reached_limit(run, resource):
        # The run would have used more: how much more is not known.
        return Verdict(resource, requested, max(used or 0, requested), True, True, resource.cause)
    if used is None or is_shared(run, resource):
        return None
    is_over = used > requested and percent_over(used, requested) >= min_over
    if is_over and resource is CPU:
        is_over = is_over_cpus(run, amount)
    return Verdict(resource, requested, used, is_at_least(run, resource), is_over, None)


def overuses(run: StoredRun) -> list[Verdict]:
    """The resources of which the run used more than it requested."""
    verdicts = (judge(run, resource) for resource in RESOURCES)
    return [verdict for verdict in verdicts if verdict is not None and verdict.is_over]


def percent_over(used: float, requested: float) -> float:
    return 100 * (used - requested) / requested


def used_amount(run: StoredRun, resource: Resource) -> float | None:
    """What the run is known to have used, in the unit of the resource; for CPU its peak, else its mean."""
    used: float | None = run.get(resource.used)
    return run.get("cpu_mean_percent") if used is None and resource is CPU else used


def is_at_least(run: StoredRun, resource: Resource) -> bool:
    """Whether a run may have used more than is known.

    If its CPU peak is the mean, it may: the run was too short for a rate (`analyse.headline`).
    """
    if resource is CPU and run.get("cpu_mean_percent") == used_amount(run, CPU) is not None:
        return True
    if not resource.quality:
        return resource.used in run.get("at_least", ())
    return bool(run.get(resource.quality) == Quality.AT_LEAST.value)


def is_shared(run: StoredRun, resource: Resource) -> bool:
    """Whether the figure is not of the run alone, so that the run may have used less."""
    return bool(resource.quality) and run.get(resource.quality) == Quality.SHARED.value


def reached_limit(run: StoredRun, resource: Resource) -> bool:
    """Whether a run ended because it reached the amount that it requested.

    A run can also run out of memory at the limit of a container around it, or of the machine. A sampled peak cannot
    exclude that the request was met: what met it may have come and gone between two samples.
    """
    if run.get("status") != resource.limit_status:
        return False
    amount, used = run.get(resource.requested), run.get(resource.used)
    if not amount:
        return False
    is_exact = used is not None and run.get(resource.quality) == Quality.EXACT.value
    return not is_exact or used >= _OWN_LIMIT * amount * resource.each


def is_over_cpus(run: StoredRun, requested: float) -> bool:
    """Whether a run used more CPUs than it requested; False if the kernel enforced the request."""
    return CPU.key not in run.get("enforced", ()) and uses_more_cpus(run, requested)


def uses_more_cpus(run: StoredRun, cpus: float) -> bool:
    """Whether a run certainly used more than `cpus` CPUs, no matter when its CPU time was read.

    One of two conditions must hold:

    - Its mean is above `cpus`, by more than sources of CPU time differ (`MEAN_OVER`) and by more than `SHORTEST_OVER`.
      The mean is the CPU time of the whole run over its wall time: gaps between readings do not affect it.
    - A peak is further above `cpus` than a limit around the job and lagging counters can explain. A peak is the CPU
      time between two readings over the time between them, a second or more; late readings never make it too high
      (`collectors.rate`). But a limit that others set lets through one quota more than its rate (`PEAK_OVER`), and the
      kernel adds to a counter once a tick: what one reading misses of each CPU, the next includes (`TICK_LAG`). A run
      shorter than a second has no such peak.
    """
    limit = 100 * cpus
    mean, wall, peak = run.get("cpu_mean_percent"), run.get("wall_seconds"), run.get("cpu_peak_percent")
    if mean is not None and wall and mean > limit * MEAN_OVER and (mean - limit) / 100 * wall > SHORTEST_OVER:
        return True
    if peak is None or (wall and wall < _SPAN):
        return False
    return bool(peak > PEAK_OVER * limit + TICK_LAG * ceil(cpus))


def needed_cpus(run: StoredRun, step: float | None = None) -> float:
    """The fewest CPUs that are enough for the run; if it stayed within its request, never more than that.

    They are counted in steps: whole CPUs, or tenths if a fraction is requested. In tenths there is no allowance for
    limits: a job shall have all that it used. Another whole CPU is added only if it was certainly used.
    """
    step = cpu_step(run.get(CPU.requested)) if step is None else step
    most = max(run.get("cpu_peak_percent") or 0.0, run.get("cpu_mean_percent") or 0.0) / 100
    enough = max(ceil(round(most / step, 6)), 1)
    if step == 1.0:
        enough = next((n for n in range(1, enough) if not uses_more_cpus(run, n)), enough)
    cpus = round(enough * step, 1)
    verdict = judge(run, CPU)
    if verdict is not None and not verdict.is_over:
        return min(cpus, verdict.requested / CPU.each)
    return cpus


def cpu_step(requested: float | None) -> float:
    """The step that a request of CPUs is rounded to: a tenth if the request is a fraction, else a whole CPU."""
    return 1.0 if requested is None or requested == int(requested) else 0.1

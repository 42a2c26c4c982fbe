"""The headline figures, one row each. Everything that shows, stores, filters or compares them follows from this table.

To add a figure, add a row; see "Adding a headline figure" in docs/design.md. The table is read by every `jobmeter run`:
it stays small, and needs only the standard library.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping

from jobmeter.analyse import headline, headline_memory
from jobmeter.analyse.headline import CpuSpan, Described, Figure, Measured, Summary, first_figure
from jobmeter.light_typing import NamedTuple
from jobmeter.model import Quality


class SummaryPart(NamedTuple):
    """How the summary of `run` words a figure."""

    line: str  # the line it stands in, with others of the same subject
    words: str = "{}"
    at_least: str = "at least {}"  # the words for a figure that may have been higher
    shows_share: bool = False  # also as a share of what was requested
    names_source: bool = True


class HeadlineFigure(NamedTuple):
    """One headline figure: what it is taken from, and where it is shown.

    Every figure is in `show --json`, in `ls --fields`, `--where` and `--sort`, and in exports.
    """

    name: str  # in `usage` of a record, in fields of `ls`, and its column in the index
    unit: str
    heading: str  # for tables
    sources: tuple[str, ...]  # keys of measurements, the best first
    statistic: str  # the statistic of the measurement: total, peak, mean or min
    reduce: Callable[[Measured], Figure | None] | None = None  # None: the statistic of the first source that has it
    requested: str = ""  # the field of a requirement that it is compared with
    summary: SummaryPart | None = None  # in the summary of `run`; None: not shown there
    in_ls: bool = False  # shown by `ls` without `--fields`
    in_show: bool = True
    in_stats: bool = False
    in_compare: bool = True
    is_cost: bool = True  # `compare` reports a rise as a regression
    grows_unseen: bool = True  # processes that run on after the measurement would add to it

    def of(self, measured: Measured) -> Figure | None:
        """The figure of one run; None when it was not measured."""
        if self.reduce is not None:
            return self.reduce(measured)
        return first_figure(measured, self.sources, self.statistic)

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.unit == "bytes" or (self.unit == "count" and self.statistic != "mean")


_AT_THE_PEAK = "at least {} at the peak"

HEADLINE: tuple[HeadlineFigure, ...] = (
    HeadlineFigure(
        "cpu_seconds", "seconds", "CPU time", (*headline.CPU_SECONDS, *headline.OTHERS_CPU_SECONDS), "total",
        headline.cpu_seconds, summary=SummaryPart("CPU"), in_ls=True, in_stats=True,
    ),
    HeadlineFigure(
        "cpu_mean_percent", "percent", "CPU mean", headline.CPU_PERCENT, "mean", headline.cpu_mean, "cpus",
        SummaryPart("CPU", "{} on average", "{} on average", shows_share=True), is_cost=False,
    ),
    HeadlineFigure(
        "cpu_peak_percent", "percent", "CPU peak", headline.CPU_PERCENT, "peak", headline.cpu_peak, "cpus",
        SummaryPart("CPU", "{} at most", _AT_THE_PEAK), in_compare=False, grows_unseen=False,
    ),
    HeadlineFigure(
        "memory_peak_bytes", "bytes", "memory peak", headline_memory.MEMORY_PEAK, "peak", headline_memory.memory_peak,
        "memory_bytes", SummaryPart("memory", "{} at most", _AT_THE_PEAK, shows_share=True),
        in_ls=True, in_stats=True,
    ),
    HeadlineFigure(
        "memory_mean_bytes", "bytes", "memory mean", headline_memory.MEMORY_MEAN, "mean", headline_memory.memory_mean,
        "memory_bytes", SummaryPart("memory", "{} on average", "{} on average"), grows_unseen=False,
    ),
    HeadlineFigure(
        "memory_min_bytes", "bytes", "memory min", headline_memory.MEMORY_MEAN, "min", headline_memory.memory_min,
        is_cost=False, grows_unseen=False,
    ),
    HeadlineFigure(
        "read_bytes", "bytes", "data read", headline.READ_BYTES, "total",
        summary=SummaryPart("disk", "{} read", "{} read", names_source=False),
    ),
    HeadlineFigure(
        "write_bytes", "bytes", "data written", headline.WRITE_BYTES, "total",
        summary=SummaryPart("disk", "{} written", "{} written", names_source=False),
    ),
    HeadlineFigure(
        "network_rx_bytes", "bytes", "received", headline.NETWORK_RX, "total",
        summary=SummaryPart("network", "{} received", "at least {} received"),
    ),
    HeadlineFigure(
        "network_tx_bytes", "bytes", "sent", headline.NETWORK_TX, "total",
        summary=SummaryPart("network", "{} sent", "at least {} sent"),
    ),
    HeadlineFigure(
        "processes_peak", "count", "processes", headline.PROCESSES, "peak",
        summary=SummaryPart("processes", "{} at most", names_source=False), is_cost=False, grows_unseen=False,
    ),
    HeadlineFigure(
        "instructions_per_cycle", "count", "IPC", ("perf_instructions", "perf_cycles"), "mean",
        headline.instructions_per_cycle, is_cost=False, grows_unseen=False,
    ),
    HeadlineFigure("gpu_seconds", "seconds", "GPU time", headline.GPU_SECONDS, "total", summary=SummaryPart("GPU")),
    HeadlineFigure(
        "gpu_memory_peak_bytes", "bytes", "GPU memory", headline.GPU_MEMORY, "peak",
        summary=SummaryPart("GPU", "{} of its memory at most", "at least {} of its memory at the peak"),
    ),
    HeadlineFigure(
        "gpus_peak", "count", "GPUs", headline.GPUS, "peak", requested="gpus", is_cost=False, grows_unseen=False,
    ),
    HeadlineFigure(
        "energy_joules", "joules", "energy", headline.ENERGY, "total", headline.energy, summary=SummaryPart("energy"),
    ),
)  # fmt: skip


def memory_first(figures: Iterable[HeadlineFigure]) -> list[HeadlineFigure]:
    """The figures in bytes first: a narrow terminal has no room for the last ones, and jobs fail for lack of memory."""
    return sorted(figures, key=lambda figure: figure.unit != "bytes")


def requested_amount(figure: HeadlineFigure, requirement: Mapping[str, float]) -> float | None:
    """What was requested of the figure's resource, in the unit of the figure; None if nothing was requested."""
    amount = requirement.get(figure.requested)
    return amount * 100 if amount is not None and figure.unit == "percent" else amount


def usage(
    summary: Summary,
    described: Described,
    wall_seconds: float,
    *,
    complete: bool = True,
    cpu_span: CpuSpan | None = None,
) -> dict[str, Figure]:
    """The headline figures of a run; figures that were not measured are absent.

    With `complete` false, processes of the job run on unmeasured: CPU time and the like become "at least". The mean CPU
    is taken over `cpu_span` if that is given, else over the wall time.
    """
    measured = Measured(summary, described, wall_seconds, cpu_span)
    figures = {}
    for row in _rows_with(tuple(summary)):
        figure = row.of(measured)
        if figure is not None:
            at_least = row.grows_unseen and not complete
            figures[row.name] = {**figure, "quality": Quality.AT_LEAST.value} if at_least else figure
    return figures


@functools.lru_cache(maxsize=64)
def _rows_with(keys: tuple[str, ...]) -> list[HeadlineFigure]:
    """The figures that a run with these measurements may have. Cached: all blocks of a program have the same."""
    return [row for row in HEADLINE if row.reduce is not None or not set(keys).isdisjoint(row.sources)]

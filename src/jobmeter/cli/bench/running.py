"""Runs the variants of a benchmark in turns, each run measured and stored as any other."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, NamedTuple

from jobmeter.analyse.bench import BENCH_MEASURES, BenchFigure, BenchRun, interleaved
from jobmeter.analyse.outcome import in_words
from jobmeter.analyse.same_source import comparable_values
from jobmeter.byte_text import bytes_to_text
from jobmeter.cli.bench.plan import BenchPlan, Variant, hook_command
from jobmeter.errors import JobmeterError, LaunchError
from jobmeter.launch.spawn import Streams
from jobmeter.meter.meter import Meter
from jobmeter.model import Quality, Status
from jobmeter.record.read import figures
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.measuring import MeasureOptions, ignore
from jobmeter.session.session import Session
from jobmeter.terminal import printable

if TYPE_CHECKING:
    from jobmeter.launch.container.spec import ContainerOptions
    from jobmeter.record.types import Record
    from jobmeter.session.contract import JobControl

_TAIL = 4096


class RunSettings(NamedTuple):
    runs: int
    warmup: int
    measure: MeasureOptions  # of every run; labels are added
    bench: str  # the id of the benchmark, which every run has as a label
    shell: str | None = None  # for the hooks
    ignore_failure: bool = False
    show_output: bool = False
    container: ContainerOptions | None = None


class Step(NamedTuple):
    """A run that is about to start."""

    variant: Variant
    number: int  # of all runs, from 1
    total: int
    is_warmup: bool


def run_bench(
    plan: BenchPlan,
    settings: RunSettings,
    warn: Callable[[str], None] = ignore,
    on_step: Callable[[Step], None] = ignore,
) -> list[list[BenchRun]]:
    """The runs of each variant. Raises LaunchError if a hook fails, or a run does and `ignore_failure` is not set."""
    return _Bench(plan, settings, warn, on_step).run()


class _Bench:
    def __init__(
        self, plan: BenchPlan, settings: RunSettings, warn: Callable[[str], None], on_step: Callable[[Step], None]
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._warn = warn
        self._on_step = on_step
        self._meter = Meter()

    def run(self) -> list[list[BenchRun]]:
        variants, settings = self._plan.variants, self._settings
        results: list[list[BenchRun]] = [[] for _ in variants]
        total = len(variants) * (settings.runs + settings.warmup)
        set_up: list[Variant] = []
        try:
            for variant in variants:
                set_up.append(variant)
                self._call("--setup", variant.hooks.setup, variant)
            order = interleaved(len(variants), settings.warmup) + interleaved(len(variants), settings.runs)
            warmups = len(variants) * settings.warmup
            for number, place in enumerate(order, start=1):
                step = Step(variants[place], number, total, number <= warmups)
                self._on_step(step)
                run = self._run(step, len(results[place]) + 1)
                if not step.is_warmup:
                    results[place].append(run)
        except BaseException:
            self._clean_up(set_up, quietly=True)
            raise
        self._clean_up(set_up, quietly=False)
        return results

    def _clean_up(self, variants: Sequence[Variant], *, quietly: bool) -> None:
        """Run the `--cleanup` hooks. Their failures are ignored if `quietly`: after an error, that one is reported."""
        for variant in variants:
            try:
                self._call("--cleanup", variant.hooks.cleanup, variant)
            except LaunchError:
                if not quietly:
                    raise

    def _run(self, step: Step, number: int) -> BenchRun:
        variant, settings = step.variant, self._settings
        self._call("--prepare", variant.hooks.prepare, variant)
        # The last line of stderr is shown if the command fails.
        with tempfile.TemporaryFile() as stderr, open(os.devnull, "r+b", buffering=0) as nothing:
            streams = None
            if not settings.show_output:
                streams = Streams(nothing.fileno(), nothing.fileno(), stderr.fileno())
            session = Session(
                self._job(variant, streams), self._measure_options(step, number), meter=self._meter, warn=self._warn
            )
            record = _run_to_the_end(session)
            if session.outcome.status != Status.COMPLETED and not settings.ignore_failure:
                raise LaunchError(
                    f"{variant.name}: {in_words(session.outcome)}{_last_line(stderr)}. "
                    "--ignore-failure counts such runs too."
                )
        self._call("--conclude", variant.hooks.conclude, variant)
        return bench_run(record)

    def _job(self, variant: Variant, streams: Streams | None) -> JobControl:
        container = self._settings.container
        if container is None:
            return LaunchedCommand(JobOptions(variant.command, streams=streams, orphans="end"))
        from jobmeter.session.container import LaunchedContainer
        from jobmeter.session.container_job import ContainerJob

        return LaunchedContainer(ContainerJob(container, variant.command, streams=streams))

    def _measure_options(self, step: Step, number: int) -> MeasureOptions:
        measure, variant = self._settings.measure, step.variant
        # Name the run after the command, not after the shell that runs it.
        measure = measure._replace(name=measure.name or os.path.basename(variant.text.split()[0]))
        if step.is_warmup:
            return measure._replace(store=None)
        labels = {"bench": self._settings.bench, "variant": variant.name, "bench_run": str(number)}
        return measure._replace(labels={**variant.parameters, **measure.labels, **labels})

    def _call(self, option: str, text: str | None, variant: Variant) -> None:
        """Run a hook, which is not measured. Raises LaunchError if it fails."""
        if text is None:
            return
        output = None if self._settings.show_output else subprocess.DEVNULL
        with tempfile.TemporaryFile() as stderr:
            errors = None if self._settings.show_output else stderr
            done = subprocess.run(
                hook_command(text, self._settings.shell),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                check=False,
            )
            if done.returncode:
                code = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
                raise LaunchError(f"{option} of {variant.name} failed with {code}{_last_line(stderr)} [{text}]")


def _run_to_the_end(session: Session) -> Record:
    """Start the job and wait for it. Ctrl-C during the start takes effect once the job runs: none is left running."""
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        session.start()
    except JobmeterError:
        if not interrupts:
            raise
        raise KeyboardInterrupt from None  # Ctrl-C reached the job, too
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        session.stop()
        session.wait()
        raise KeyboardInterrupt
    return session.wait()


def bench_run(record: Record) -> BenchRun:
    """The part of a run record that a benchmark needs."""
    bench_figures = {"wall_seconds": BenchFigure(record["wall_seconds"], "clock")}
    for measure in BENCH_MEASURES:
        figure = figures(record).get(measure.key)
        if figure is not None:
            bench_figures[measure.key] = BenchFigure(
                float(figure["value"]),
                figure["from"],
                figure["quality"] == Quality.AT_LEAST,
                comparable_values(record, measure.key),
            )
    outcome = record["outcome"]
    return BenchRun(record["id"], outcome["status"], outcome["exit_code"], bench_figures)


def _last_line(stderr: IO[bytes]) -> str:
    """A colon and the last line of stderr that is not blank; empty if there is none."""
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(size - _TAIL, 0))
    lines = [line.strip() for line in bytes_to_text(stderr.read()).split("\n") if line.strip()]
    return f": {printable(lines[-1])[:200]}" if lines else ""

"""`jobmeter bench`: runs commands many times, in turns, and compares what they use."""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Any

from jobmeter.cli.bench.options import JUDGED, judged_measures, parse
from jobmeter.cli.bench.plan import BenchPlan, make_plan
from jobmeter.cli.bench.progress import progress
from jobmeter.cli.bench.running import RunSettings, run_bench
from jobmeter.cli.bench.saved import load, save
from jobmeter.cli.shared.output import check_output, print_json, print_line, print_lines, warn
from jobmeter.cli.shared.tables import print_table, report_left_out, terminal
from jobmeter.errors import UsageError, quote
from jobmeter.links import open_output
from jobmeter.record.build import new_run_id
from jobmeter.redaction import redaction
from jobmeter.report.bench.formats import format_of
from jobmeter.report.bench.text import all_lines, layout_of, summary_table, verdict_lines
from jobmeter.session.measuring import MeasureOptions
from jobmeter.settings import Configuration
from jobmeter.suggestion import suggest
from jobmeter.times import utc

if TYPE_CHECKING:
    from jobmeter.analyse.bench import BenchRun
    from jobmeter.analyse.bench_result import BenchResult
    from jobmeter.analyse.bench_verdict import BenchVerdict

_TOLERANCE = 0.05
_ELSEWHERE = "-o FILE, --json or a pipe has all"


def main(arguments: list[str]) -> int:
    """Run the benchmark. Returns 1 if something is worse than the baseline, else 0."""
    options = parse(arguments)
    measure = _measure_options(options)
    plan = make_plan(
        options.templates,
        options.parameters,
        options.hooks,
        shell=options.shell,
        names=options.command_name,
        workers=options.workers,
        in_container=options.container is not None,
    )
    assert measure.store is not None
    hide = redaction(None if measure.redact is None else tuple(measure.redact))
    names = [hide.text(variant.name) for variant in plan.variants]
    baseline = None if options.baseline is None else _baseline(measure.store, options.baseline, names)
    for path in options.output:
        check_output("-o", path)

    result = _run(options, plan, measure)
    verdict = None if baseline is None else _judge(options, baseline, result)
    _report(options, result, verdict)
    for path in options.output:
        _write(path, result)
    if options.save is not None:
        save(measure.store, options.save, result)
        warn(f"saved as {options.save}: compare with it by --baseline {options.save}")
    return 1 if verdict is not None and verdict.regressions else 0


def _run(options: argparse.Namespace, plan: BenchPlan, measure: MeasureOptions) -> BenchResult:
    settings = RunSettings(
        runs=options.runs,
        warmup=options.warmup,
        measure=measure,
        bench=new_run_id(),
        shell=options.shell,
        ignore_failure=options.ignore_failure,
        show_output=options.show_output,
    )
    if options.container is not None:
        from jobmeter.cli.run_container import container_options

        settings = settings._replace(container=container_options(options))
    started = utc(time.time())
    with progress(shown=not options.show_output) as on_step:
        runs = run_bench(plan, settings, warn, on_step)
    return _result(settings, started, plan, runs)


def _baseline(store: str, text: str, names: list[str]) -> BenchResult:
    """Load the baseline. Raises UsageError if it has none of the variants: nothing would ever be a regression."""
    baseline = load(store, text)
    there = [variant.name for variant in baseline.variants]
    if not set(names) & set(there):
        hint = suggest(names[0], there)
        raise UsageError(f"--baseline: {text} has no variant {quote(names[0])}. {hint} --command-name names commands.")
    return baseline


def _result(settings: RunSettings, started: str, plan: BenchPlan, runs: list[list[BenchRun]]) -> BenchResult:
    from jobmeter.analyse.bench_result import BenchResult, VariantResult

    redact = settings.measure.redact
    hide = redaction(None if redact is None else tuple(redact))
    variants = [
        VariantResult(hide.text(variant.name), hide.text(variant.text), variant.parameters, of_variant)
        for variant, of_variant in zip(plan.variants, runs)
    ]
    return BenchResult(settings.bench, started, os.uname().nodename, settings.warmup, plan.workers, variants)


def _judge(options: argparse.Namespace, baseline: BenchResult, result: BenchResult) -> BenchVerdict:
    from jobmeter.analyse.bench_verdict import judge

    if baseline.host != result.host:
        warn(f"{options.baseline} was measured on {baseline.host}, not on {result.host}: times may differ for that")
    tolerance = _TOLERANCE if options.tolerance is None else options.tolerance
    sides = [{variant.name: variant.runs for variant in each.variants} for each in (baseline, result)]
    return judge(sides[0], sides[1], tolerance, [JUDGED[name] for name in judged_measures(options)])


def _report(options: argparse.Namespace, result: BenchResult, verdict: BenchVerdict | None) -> None:
    tolerance = _TOLERANCE if options.tolerance is None else options.tolerance
    if options.json:
        print_json({**result.as_json(), **({} if verdict is None else {"comparison": _comparison(options, verdict)})})
        return
    console = terminal()
    width = None if console is None else console.width
    print_lines(all_lines(result, width))
    report_left_out(layout_of(result.variants[0], width), _ELSEWHERE)
    if len(result.variants) > 1:
        print_line()
        print_table(*summary_table(result), elsewhere=_ELSEWHERE)
    if verdict is not None:
        print_line()
        print_lines(verdict_lines(verdict, options.baseline, tolerance))
    print_line()
    print_line(f"The runs are stored: jobmeter ls --label bench={result.id}")


def _comparison(options: argparse.Namespace, verdict: BenchVerdict) -> dict[str, Any]:
    return {
        "baseline": options.baseline,
        "tolerance": _TOLERANCE if options.tolerance is None else options.tolerance,
        "regressions": len(verdict.regressions),
        "figures": [
            {"variant": each.variant, **each.difference.as_json(), "is_regression": each.is_regression}
            for each in verdict.judged
        ],
        "not_compared": [
            {"variant": each.variant, "key": each.measure.key, "why": each.why} for each in verdict.not_compared
        ],
        "missing": verdict.missing,
    }


def _write(path: str, result: BenchResult) -> None:
    render = format_of(path)
    assert render is not None, "it was checked"
    try:
        with open(open_output(path), "w", encoding="utf-8") as file:
            file.write(render(result))
    except OSError as error:
        raise UsageError(f"-o: {path}: {error.strerror}") from None


def _measure_options(options: argparse.Namespace) -> MeasureOptions:
    settings = Configuration(warn)
    return MeasureOptions(
        name=options.name,
        labels=dict(options.label),
        interval=settings.resolve("interval", options.interval),
        measurements=settings.resolve("measurements", options.measurements),
        from_file=settings.is_from_file("measurements", options.measurements),
        store=settings.resolve("store", options.store),
        redact=settings.resolve("redact"),
    )

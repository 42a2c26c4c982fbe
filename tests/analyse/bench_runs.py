"""Runs of a benchmark whose figures are known."""

from __future__ import annotations

from collections.abc import Sequence

from jobmeter.analyse.bench import BenchFigure, BenchRun


def bench_runs(key: str, values: Sequence[float], source: str = "clock", prefix: str = "r") -> list[BenchRun]:
    return [
        BenchRun(f"{prefix}{number}", "completed", 0, {key: BenchFigure(value, source, sources={source: value})})
        for number, value in enumerate(values)
    ]

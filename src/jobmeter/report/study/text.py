"""The tables and sentences of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobmeter.analyse.study import EarlyStop, Ranked, Study, Totals, Trial
from jobmeter.report.table_layout import Column
from jobmeter.units import share_text, text

TOTAL_COLUMNS = (
    Column("trials", essential=True),
    Column("count", "count", essential=True),
    *(Column(name, "count") for name in ("wall_hours", "core_hours", "gb_hours", "gpu_hours")),
)
_MOST_STOPS = 5


def hours(value: float) -> str:
    """Hours with three significant digits."""
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def total_rows(study: Study) -> list[list[str]]:
    """Rows for the completed trials, for the others by status, and for all."""
    groups = [("completed", study.completed), *study.failures.items(), ("all", study.total)]
    return [[name, f"{each.trials:,}", *map(hours, each[1:])] for name, each in groups]


def ranking_columns(metric: str) -> list[Column]:
    return [
        Column("rank", "count"),
        Column("trial", essential=True, shortens=True),
        Column("id"),
        Column(metric, "count", essential=True),
        Column("wall", "seconds"),
        Column("core_hours", "count"),
        Column("memory_peak", "bytes"),
        Column("gain_per_core_hour", "count"),
        Column("efficient"),
        Column("labels", shortens=True),
    ]


def ranking_rows(ranking: Sequence[Ranked]) -> list[list[str]]:
    return [
        [
            str(place),
            each.trial.name,
            each.trial.id,
            number(each.trial.value),
            *_cost(each.trial),
            "" if each.gain_per_core_hour is None else number(each.gain_per_core_hour),
            "yes" if each.is_efficient else "",
            labels_text(each.trial),
        ]
        for place, each in enumerate(ranking, start=1)
    ]


COSTLIEST_COLUMNS = (
    Column("trial", essential=True, shortens=True),
    Column("id"),
    Column("status"),
    Column("wall", "seconds"),
    Column("core_hours", "count", essential=True),
    Column("memory_peak", "bytes"),
    Column("labels", shortens=True),
)


def costliest_rows(trials: Sequence[Trial]) -> list[list[str]]:
    return [[trial.name, trial.id, trial.status, *_cost(trial), labels_text(trial)] for trial in trials]


def _cost(trial: Trial) -> list[str]:
    memory = "" if trial.memory_peak_bytes is None else text(trial.memory_peak_bytes, "bytes")
    return [text(trial.wall_seconds, "seconds"), hours(trial.core_hours), memory]


def labels_text(trial: Trial) -> str:
    return " ".join(f"{name}={value}" for name, value in trial.labels.items())


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def sentences(study: Study, metric: str | None) -> list[str]:
    """Sentences about failures, early stops and trials without the metric."""
    lines = []
    if study.failures:
        lost = sum(each.core_hours for each in study.failures.values())
        count = sum(each.trials for each in study.failures.values())
        share = lost / study.total.core_hours if study.total.core_hours else 0.0
        trials = f"{count:,} trial{'s' * (count != 1)}"
        lines.append(f"{trials} did not complete: {hours(lost)} core-hours, {share_text(share)} of all.")
    if study.early_stops:
        lines.append(_early_text(study.early_stops, study.total))
    if metric is not None and study.ranking:
        missing = study.completed.trials - len(study.ranking)
        if missing:
            lines.append(f"{missing:,} completed trial{'s' * (missing != 1)} reported no {metric}.")
    return lines


def _early_text(stops: Sequence[EarlyStop], total: Totals) -> str:
    saved = sum(stop.saved_core_hours for stop in stops)
    share = saved / total.core_hours if total.core_hours else 0.0
    first = sorted(stops, key=lambda stop: -stop.saved_core_hours)[:_MOST_STOPS]
    named = ", ".join(f"{stop.trial.name} after {text(stop.seconds, 'seconds')}" for stop in first)
    more = f" and {len(stops) - len(first):,} more" if len(stops) > len(first) else ""
    return (
        f"Could have been stopped early, because they were worse than the median then and at the end: {named}{more}. "
        f"That would have saved {hours(saved)} core-hours, {share_text(share)} of all."
    )


def study_object(study: Study, trials: Sequence[Trial], metric: str | None, *, maximize: bool) -> dict[str, Any]:
    """The whole study as JSON, with every trial."""
    entry: dict[str, Any] = {
        "trials": [_trial_object(trial, metric) for trial in trials],
        "total": _totals_object(study.total),
        "completed": _totals_object(study.completed),
        "failures": {status: _totals_object(each) for status, each in study.failures.items()},
        "costliest": [trial.id for trial in study.costliest],
    }
    if metric is not None:
        entry["metric"] = {"name": metric, "goal": "maximize" if maximize else "minimize"}
        entry["ranking"] = [_ranked_object(each) for each in study.ranking]
        entry["early_stops"] = [
            {"id": stop.trial.id, "seconds": stop.seconds, "saved_core_hours": round(stop.saved_core_hours, 6)}
            for stop in study.early_stops
        ]
    return entry


def _trial_object(trial: Trial, metric: str | None) -> dict[str, Any]:
    fields = {
        "id": trial.id,
        "name": trial.name,
        "status": trial.status,
        "labels": trial.labels,
        "wall_seconds": trial.wall_seconds,
        "cpu_seconds": trial.cpu_seconds,
        "memory_peak_bytes": trial.memory_peak_bytes,
        "memory_mean_bytes": trial.memory_mean_bytes,
        "gpus": trial.gpus,
        **({metric: trial.value} if metric is not None else {}),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _ranked_object(each: Ranked) -> dict[str, Any]:
    gain = {} if each.gain_per_core_hour is None else {"gain_per_core_hour": round(each.gain_per_core_hour, 6)}
    return {"id": each.trial.id, "value": each.trial.value, "efficient": each.is_efficient, **gain}


def _totals_object(totals: Totals) -> dict[str, Any]:
    return {name: round(value, 6) for name, value in totals._asdict().items()}

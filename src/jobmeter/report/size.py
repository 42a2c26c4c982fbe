"""What `size` advises, in words: lines of the table, the sentences below it, objects of the JSON."""

from __future__ import annotations

from typing import Any

from jobmeter.analyse.resource import CPU, RUNTIME, Resource
from jobmeter.analyse.size import Advice, Amount
from jobmeter.report.check import duration
from jobmeter.report.table import printable
from jobmeter.units import text

HEADINGS = ("Job Name", "Resource", "Requested", "Advised", "Most Used")
UNITS = ("text", "text", "count", "count", "count")
MAY_BE_CUT = ("Job Name",)
_LITTLE = 0.005
"""GB-hours or core-hours per run; less is not reported."""


def cells(advice: Advice) -> list[list[str]]:
    """The lines of one job in the table."""
    return [
        [
            printable(advice.name),
            amount.resource.name,
            "-" if amount.today is None else quantity(amount.today, amount.resource),
            quantity(amount.request, amount.resource),
            quantity(amount.most, amount.resource),
        ]
        for amount in advice.amounts
    ]


def quantity(value: float, resource: Resource) -> str:
    """`12 GiB`, `8`, `2h 45m 0s`."""
    if resource is CPU:
        return text(value, "count")
    return duration(value) if resource is RUNTIME else text(value, "bytes")


def sentences(advice: Advice) -> list[str]:
    """How many runs there are, the expected failure rate, what today's request wastes, and the reasons, a line each."""
    if not advice.completed:
        return [unknown(advice), *_reasons(advice)]
    runs = "1 run" if advice.runs == 1 else f"{advice.runs:,} runs"
    parts = [
        f"{printable(advice.name)}: {runs}, {advice.completed:,} completed",
        f"expected failure rate: {_share(advice.fails)}",
    ]
    wasted = [
        f"{amount:.3g} {unit}"
        for amount, unit in ((advice.wasted_gb_hours, "GB-h"), (advice.wasted_core_hours, "core-h"))
        if amount is not None and amount >= _LITTLE
    ]
    if wasted:
        parts.append(f"what it requests today wastes {' and '.join(wasted)} a run")
    return ["; ".join(parts), *_reasons(advice)]


def _reasons(advice: Advice) -> list[str]:
    return [f"  {amount.resource.name + ':':<9}{amount.reason}" for amount in advice.amounts]


def unknown(advice: Advice) -> str:
    """Why it is unknown, or hardly known, what a job needs."""
    name = printable(advice.name)
    if advice.completed:
        return f"{name}: what its runs used was not measured"
    if not advice.runs:
        return f"{name}: no run of it has ended yet, so nothing is known of what it needs"
    none = "its only run has not completed" if advice.runs == 1 else f"none of its {advice.runs:,} runs has completed"
    rest = "no more is known of what it needs than this" if advice.amounts else "so what it needs is not known"
    return f"{name}: {none}, {rest}"


def _share(share: float | None) -> str:
    if share is None:
        return "unknown"
    return "below 0.01 %" if share < 0.0001 else f"{100 * share:.2g} % of the runs"


def advice_object(advice: Advice) -> dict[str, Any]:
    """The advice as JSON; unknown values are absent."""
    fields: dict[str, Any] = {"job_name": advice.name, "runs": advice.runs, "completed": advice.completed}
    fields |= {amount.resource.field: _amount_object(amount) for amount in advice.amounts}
    rates = {
        "expected_failures": advice.fails,
        "wasted_gb_hours": advice.wasted_gb_hours,
        "wasted_core_hours": advice.wasted_core_hours,
    }
    return fields | {name: round(value, 6) for name, value in rates.items() if value is not None}


def _amount_object(amount: Amount) -> dict[str, Any]:
    fields = {"ask": amount.request, "most": amount.most, "usual": amount.usual, "reason": amount.reason}
    if amount.today is not None:
        fields["today"] = amount.today
    if amount.fails is not None:
        fields["expected_failures"] = round(amount.fails, 6)
    return {name: round(value, 3) if isinstance(value, float) and name != "expected_failures" else value
            for name, value in fields.items()}  # fmt: skip

"""What `size` advises, in words: lines of the table, the sentences below it, objects of the JSON."""

from __future__ import annotations

from typing import Any

from jobmeter.analyse.resource import CPU, GPU_MEMORY, RUNTIME, Resource
from jobmeter.analyse.size.advice import Advice, Amount
from jobmeter.report.table_layout import Column
from jobmeter.terminal import printable
from jobmeter.units import text

COLUMNS = (
    Column("job_name", essential=True, shortens=True),
    Column("resource_type", essential=True),
    Column("requested", "count", essential=True),
    Column("advised", "count", essential=True),
    Column("most_used", "count"),
)
_LITTLE = 0.005
"""GiB-hours or core-hours per run; less is not reported."""
FINE = 0.1
"""A request that differs from the advice by less than this share is fine."""


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
    return text(value, "count" if resource is CPU else resource.unit)


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
        for amount, unit in ((advice.wasted_gb_hours, "GiB-h"), (advice.wasted_core_hours, "core-h"))
        if amount is not None and amount >= _LITTLE
    ]
    if wasted:
        parts.append(f"what it requests today wastes {' and '.join(wasted)} a run")
    lines = ["; ".join(parts), *_reasons(advice)]
    return [*lines, f"  Cost:    {cost}"] if (cost := _cost(advice)) else lines


def _cost(advice: Advice) -> str:
    """What an average run would hold with the advice, and what it holds with today's request."""
    parts = [
        f"{advised:.3g} {unit} a run, today {today:.3g}" if today is not None else f"{advised:.3g} {unit} a run"
        for advised, today, unit in (
            (advice.advised.gb_hours, advice.today.gb_hours, "GiB-h"),
            (advice.advised.core_hours, advice.today.core_hours, "core-h"),
        )
        if advised is not None and max(advised, today or 0.0) >= _LITTLE
    ]
    return "; ".join(parts)


def is_fine(advice: Advice) -> bool:
    """Whether a change would gain nothing: every request is near the advice. Requesting too much time costs nothing."""
    if not advice.amounts:
        return False
    for amount in advice.amounts:
        if amount.resource is GPU_MEMORY:
            continue  # no run requests it
        if amount.today is None or amount.request > amount.today:
            return False
        if amount.resource is not RUNTIME and amount.request < (1 - FINE) * amount.today:
            return False
    return True


def savings(advised: list[Advice], hidden: int) -> str:
    """What the stored runs of all jobs together would have saved."""
    memory = sum(advice.saved_gb_hours() for advice in advised)
    cpus = sum(advice.saved_core_hours() for advice in advised)
    before = sum(advice.completed * (advice.today.gb_hours or 0.0) for advice in advised)
    share = f" ({100 * memory / before:.0f} %)" if before > 0 else ""
    fine = f"; {hidden:,} more are fine" if hidden else ""
    return (
        f"{len(advised):,} jobs: the stored runs would have held {memory:,.3g} GiB-h{share} and {cpus:,.3g} core-h "
        f"less by the advice{fine}"
    )


def _reasons(advice: Advice) -> list[str]:
    return [f"  {amount.resource.name + ':':<8} {amount.reason}" for amount in advice.amounts]


def unknown(advice: Advice) -> str:
    """Why it is not known, or hardly known, what a job needs."""
    name = printable(advice.name)
    if advice.completed:
        return f"{name}: what its runs used was not measured"
    if not advice.runs:
        return f"{name}: no run of it has ended yet, so nothing is known of what it needs"
    none = "its only run has not completed" if advice.runs == 1 else f"none of its {advice.runs:,} runs has completed"
    rest = "so the advice is only a guess" if advice.amounts else "so what it needs is not known"
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
        "gb_hours_today": advice.today.gb_hours,
        "gb_hours_advised": advice.advised.gb_hours,
        "core_hours_today": advice.today.core_hours,
        "core_hours_advised": advice.advised.core_hours,
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

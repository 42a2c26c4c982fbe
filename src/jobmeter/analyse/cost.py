"""The cost of resources in money and in carbon, by the factors that the user set; nothing without them."""

from __future__ import annotations

from collections.abc import Mapping

from jobmeter.light_typing import NamedTuple

JOULES_PER_KWH = 3.6e6


class Factors(NamedTuple):
    """The settings of the same names; None: not set."""

    carbon_per_kwh: float | None = None  # grams of CO2 or its equivalent
    price_per_kwh: float | None = None  # in any currency, the same for all prices
    price_per_core_hour: float | None = None
    price_per_gb_hour: float | None = None
    price_per_gpu_hour: float | None = None


NO_FACTORS = Factors()
_PRICED = {
    "price_per_kwh": "energy_kwh",
    "price_per_core_hour": "core_hours",
    "price_per_gb_hour": "gb_hours",
    "price_per_gpu_hour": "gpu_hours",
}


def costs(amounts: Mapping[str, float], factors: Factors) -> dict[str, float]:
    """`carbon_grams` and `cost` of the amounts, given by name (`energy_kwh`, `core_hours` …); absent if unknown.

    `cost` adds up the amounts that are known and have a price.
    """
    result = {}
    energy = amounts.get("energy_kwh")
    if energy is not None and factors.carbon_per_kwh is not None:
        result["carbon_grams"] = energy * factors.carbon_per_kwh
    priced = [
        amounts[name] * price
        for factor, name in _PRICED.items()
        if name in amounts and (price := getattr(factors, factor)) is not None
    ]
    if priced:
        result["cost"] = sum(priced)
    return result


def amounts_of_run(figures: Mapping[str, float], wall_seconds: float | None) -> dict[str, float]:
    """The amounts of one run, from its headline figures."""
    amounts = {}
    for name, figure, unit in (
        ("energy_kwh", "energy_joules", JOULES_PER_KWH),
        ("core_hours", "cpu_seconds", 3600.0),
        ("gpu_hours", "gpu_seconds", 3600.0),
    ):
        if figure in figures:
            amounts[name] = figures[figure] / unit
    if "memory_mean_bytes" in figures and wall_seconds is not None:
        amounts["gb_hours"] = figures["memory_mean_bytes"] * wall_seconds / 2.0**30 / 3600
    return amounts

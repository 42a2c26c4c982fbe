"""The result of a benchmark: its variants with all their runs, as it is reported and saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jobmeter.analyse.bench import (
    BENCH_MEASURES,
    BenchRun,
    Scaling,
    Spread,
    outliers,
    run_from_json,
    scalings,
    spread_of,
)
from jobmeter.model import Status

SCHEMA = "jobmeter.bench/1"


class VariantResult(NamedTuple):
    name: str
    command: str
    parameters: Mapping[str, str]
    runs: Sequence[BenchRun]

    def spreads(self) -> dict[str, Spread]:
        """The statistics of each figure that was measured, by the key of its measure."""
        spreads = {measure.key: spread_of(self.runs, measure.key) for measure in BENCH_MEASURES}
        return {key: spread for key, spread in spreads.items() if spread is not None}

    def outliers(self, key: str) -> list[BenchRun]:
        """The runs whose figure is far from that of the others."""
        runs = [run for run in self.runs if key in run.figures]
        return [runs[place] for place in outliers([run.figures[key].value for run in runs])]

    @property
    def failed(self) -> int:
        return sum(run.status != Status.COMPLETED for run in self.runs)


class BenchResult(NamedTuple):
    id: str
    started: str  # ISO 8601
    host: str
    warmup: int
    workers: str | None  # the parameter that counts workers
    variants: Sequence[VariantResult]

    def scalings(self) -> list[Scaling | None]:
        """The scaling of each variant; empty if there are fewer than two variants."""
        if len(self.variants) < 2:
            return []
        walls = [variant.spreads().get("wall_seconds") for variant in self.variants]
        return scalings([variant.parameters for variant in self.variants], walls, self.workers)

    def as_json(self) -> dict[str, Any]:
        """The whole result as JSON; unknown values are absent."""
        scaled = self.scalings() or [None] * len(self.variants)
        return {
            "schema": SCHEMA,
            "id": self.id,
            "started": self.started,
            "host": self.host,
            "warmup": self.warmup,
            **({"workers": self.workers} if self.workers is not None else {}),
            "variants": [_variant_json(variant, scaling) for variant, scaling in zip(self.variants, scaled)],
        }


def _variant_json(variant: VariantResult, scaling: Scaling | None) -> dict[str, Any]:
    spreads = variant.spreads()
    outliers = {key: [run.id for run in variant.outliers(key)] for key in spreads}
    entry: dict[str, Any] = {
        "name": variant.name,
        "command": variant.command,
        "parameters": dict(variant.parameters),
        "failed": variant.failed,
        "figures": {key: spread.as_json() for key, spread in spreads.items()},
        "outliers": {key: runs for key, runs in outliers.items() if runs},
        "runs": [run.as_json() for run in variant.runs],
    }
    if scaling is not None:
        entry["speed_up"] = scaling.speed_up
        if scaling.efficiency is not None:
            entry["efficiency"] = scaling.efficiency
    return entry


def result_from_json(entry: Mapping[str, Any]) -> BenchResult:
    """Rebuild a result from what `as_json` returned.

    Raises KeyError, TypeError, ValueError or AttributeError if the entry does not have that form.
    """
    if entry["schema"] != SCHEMA:
        raise ValueError(f"written as {entry['schema']}, this version reads {SCHEMA}")
    variants = [
        VariantResult(
            str(each["name"]),
            str(each["command"]),
            dict(each["parameters"]),
            [run_from_json(run) for run in each["runs"]],
        )
        for each in entry["variants"]
    ]
    return BenchResult(
        str(entry["id"]),
        str(entry["started"]),
        str(entry["host"]),
        int(entry["warmup"]),
        entry.get("workers"),
        variants,
    )

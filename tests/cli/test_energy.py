"""Energy, carbon and cost: added up by name and by label, with the factors of the configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobmeter.cli.main import main
from tests.cli.listing import Commands
from tests.runs import record

KWH = 3.6e6
FACTORS = "carbon_per_kwh = 400\nprice_per_kwh = 0.5\nprice_per_core_hour = 2\nprice_per_gpu_hour = 3.0\n"


@pytest.fixture
def energy(jobmeter: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Team a used 3 kWh in two runs, team b 1 kWh and an hour of a GPU."""
    monkeypatch.chdir(tmp_path)
    for number, (team, kwh) in enumerate((("a", 1.0), ("a", 2.0), ("b", 1.0))):
        figures: dict[str, Any] = {"gpu_seconds": 3600.0} if team == "b" else {}
        labels = {"team": team}
        jobmeter.keep(
            record(f"run{number}", "train", labels=labels, wall_seconds=9.0, cpu_seconds=1800.0,
                   energy_joules=kwh * KWH, **figures)
        )  # fmt: skip
    return jobmeter


def test_energy_carbon_and_cost_are_added_up_by_label(energy: Commands, tmp_path: Path) -> None:
    (tmp_path / "jobmeter.toml").write_text(FACTORS)
    answer = json.loads(energy("stats", "--by", "team", "--json").out)
    teams = {group["team"]: group for group in answer["groups"]}
    assert (3.0, 1200.0, 3.5) == tuple(teams["a"][name] for name in ("energy_kwh", "carbon_grams", "cost"))
    assert (1.0, 1.0, 400.0, 4.5) == tuple(
        teams["b"][name] for name in ("energy_kwh", "gpu_hours", "carbon_grams", "cost")
    )
    assert (4.0, 1600.0, 8.0) == tuple(answer["total"][name] for name in ("energy_kwh", "carbon_grams", "cost"))
    by_name = json.loads(energy("stats", "--json").out)["groups"][0]
    assert (4.0, 8.0) == (by_name["energy_kwh"], by_name["cost"])
    table = energy("stats", "--by", "team").out
    assert "energy_kwh" in table
    assert "1,200" in table
    assert "energy_kwh" in energy("stats", "--csv").out


def test_without_factors_there_is_energy_and_no_cost(energy: Commands) -> None:
    answer = json.loads(energy("stats", "--json").out)
    assert 4.0 == answer["total"]["energy_kwh"]
    assert "cost" not in answer["total"]
    assert "cost" not in energy("show", "run0").out


def test_show_has_the_cost_of_one_run(energy: Commands, tmp_path: Path) -> None:
    (tmp_path / "jobmeter.toml").write_text(FACTORS)
    assert "cost       1.5, 400 g of CO₂" in energy("show", "run0").out


def test_runs_without_energy_have_no_column(jobmeter: Commands) -> None:
    jobmeter.keep(record("run1", "train", wall_seconds=9.0, cpu_seconds=1.0))
    assert "energy" not in jobmeter("stats").out


@pytest.mark.parametrize("value", ['"much"', "-1", "true", "nan"])
def test_a_factor_that_is_none_is_refused(
    energy: Commands, tmp_path: Path, capfd: pytest.CaptureFixture[str], value: str
) -> None:
    (tmp_path / "jobmeter.toml").write_text(f"price_per_kwh = {value}\n")
    assert 2 == main(["stats", "--store", str(energy.folder)])
    assert "jobmeter.toml: price_per_kwh" in capfd.readouterr().err

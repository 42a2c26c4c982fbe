"""Records as they are reported: with the findings of what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobmeter.journal.reader import JournalWindow
from jobmeter.report.record import windows_for_findings, with_findings
from tests.records import check_record
from tests.runs import keep, record, windows


def test_findings_follow_from_the_record_and_its_windows() -> None:
    run = record("aaa1", wall_seconds=12.0, memory_peak_bytes=5 << 30, requirement={"memory_bytes": 4 << 30})
    reported = with_findings(run, windows(12, seconds=5.0))
    check_record(reported)
    assert ["over_memory", "growth"] == [finding["kind"] for finding in reported["findings"]]
    assert ["problem", "hint"] == [finding["severity"] for finding in reported["findings"]]
    assert "findings" not in run


def test_findings_of_another_version_are_replaced() -> None:
    run: Any = {**record("aaa1", wall_seconds=1.0), "findings": [{"kind": "old", "severity": "hint", "text": "x"}]}
    assert [] == with_findings(run, [])["findings"]


@pytest.mark.parametrize(("seconds", "expected"), [(12.0, windows(12)), (7.9, [])], ids=["long", "too short to leak"])
def test_windows_are_those_of_the_journal(tmp_path: Path, seconds: float, expected: list[JournalWindow]) -> None:
    run = record("aaa1", wall_seconds=seconds)
    keep(str(tmp_path), run, cells=windows(12))
    (journal,) = (tmp_path / "journal").glob("*.jsonl")
    assert expected == windows_for_findings(str(journal), run)


@pytest.mark.parametrize("journal", [None, "/nowhere/aaa1.jsonl"])
def test_without_a_journal_there_are_no_windows(journal: str | None) -> None:
    assert [] == windows_for_findings(journal, record("aaa1", wall_seconds=12.0))

"""`jobmeter import`: what is kept, what is reported, and that nothing is kept twice."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from jobmeter.cli.main import main
from jobmeter.store import Store, open_store
from tests.exchange.reading import FIXTURES

TABLE = "JobID|State|Elapsed|MaxRSS\n"


class Session:
    """A store of its own, and `jobmeter import` into it."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.location = str(folder / "store")
        self._capture = capture

    def run(self, *arguments: str) -> tuple[int, list[str], list[str]]:
        """Exit code, and the lines of stdout and stderr."""
        code = main(["import", "--store", self.location, *arguments])
        printed = self._capture.readouterr()
        return code, printed.out.splitlines(), printed.err.splitlines()

    def file(self, content: str | bytes, name: str = "file.txt") -> str:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def store(self) -> Store:
        return open_store(self.location, print)


@pytest.fixture
def session(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Session:
    return Session(tmp_path, capfd)


def test_the_same_file_twice_adds_nothing_twice(session: Session) -> None:
    path = str(FIXTURES / "sacct.txt")
    later = "1 not ended yet (import the file again when they have)"
    assert (0, [f"{path}: `sacct -P`: 10 new, 0 known, {later}"], []) == session.run(path)
    assert (0, [f"{path}: `sacct -P`: 0 new, 10 known, {later}"], []) == session.run(path)
    assert 10 == len(list(session.store().runs()))


def test_files_of_all_kinds_at_once(session: Session) -> None:
    code, lines, errors = session.run(*map(str, sorted(FIXTURES.iterdir())))
    assert (0, []) == (code, errors)
    # The info and usage files of a log of con-duct are one run.
    assert 16 == len(lines)
    rows = list(session.store().runs())
    # Two traces, one raw and one for people, list the same two tasks.
    counts = {"duct": 5, "gnutime": 6, "nextflow": 5, "slurm": 16}
    sources = [row["labels"]["source"] for row in rows]
    assert counts == {source: sources.count(source) for source in counts}


def test_what_is_kept_can_be_read_again(session: Session) -> None:
    session.run(str(FIXTURES / "duct_load_info.json"))
    store = session.store()
    run_id = store.resolve("python3")
    record, journal = store.record(run_id), store.journal(run_id)
    assert "duct_rss_total" == record["usage"]["memory_peak_bytes"]["from"]
    assert {"unit": "bytes", "kind": "gauge", "across": "sum", "quality": "sampled", "gauge": "level"} == {
        key: value for key, value in journal.header["measurements"]["duct_rss_total"].items() if key != "help"
    }
    assert [0.01, 1.27, 2.21, 2.52] == [window.seconds for window in journal.windows]


def test_a_job_that_has_ended_since_is_kept_then(session: Session) -> None:
    path = session.file(TABLE + "1|RUNNING|00:00:05|\n")
    assert 0 == session.run(path)[0]
    assert [] == list(session.store().runs())
    session.file(TABLE + "1|COMPLETED|00:00:09|\n1.batch|COMPLETED|00:00:09|5M\n")
    session.run(path)
    assert [(9.0, 5 << 20)] == [(row["wall_seconds"], row["memory_peak_bytes"]) for row in session.store().runs()]


def test_a_bad_row_is_reported_with_its_line_and_the_others_are_kept(session: Session) -> None:
    path = session.file(TABLE + "1|COMPLETED|00:00:05|\n2|COMPLETED|soon|\n3|COMPLETED|00:00:05|\n")
    code, lines, errors = session.run(path)
    assert (1, [f"{path}: `sacct -P`: 2 new, 0 known, 1 unusable"]) == (code, lines)
    assert [f"jobmeter: {path}: line 3: job 2: Elapsed 'soon' is not a time like 1-02:03:04 or 02:03.500"] == errors


def test_json_reports_the_same_in_numbers(session: Session) -> None:
    path = str(FIXTURES / "nextflow_people.txt")
    _, lines, _ = session.run("--json", path)
    expected = {"file": path, "kind": "nextflow", "new": 4, "known": 0, "unusable": 0, "unfinished": 0}
    assert [expected] == json.loads("".join(lines))


def test_output_of_sacct_comes_through_a_pipe(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((FIXTURES / "sacct.txt").read_bytes())))
    code, lines, _ = session.run("-")
    assert (0, "stdin: `sacct -P`: 10 new, 0 known") == (code, lines[0].partition(", 1 not")[0])


def test_a_usage_file_of_con_duct_names_its_log(session: Session) -> None:
    _, lines, _ = session.run(str(FIXTURES / "duct_load_usage.jsonl"))
    assert [f"{FIXTURES}/duct_load_info.json: logs of con-duct: 1 new, 0 known"] == lines


def test_the_kind_can_be_named(session: Session) -> None:
    path = session.file("no header\n1|2\n")
    code, _, errors = session.run("--from", "slurm", path)
    advice = "names no column JobID. Make it with `sacct -P`, without --noheader."
    assert (2, [f"jobmeter: {path}: line 1: {advice}"]) == (code, errors)


@pytest.mark.parametrize("kind", ["slurm", "nextflow", "gnutime"])
def test_a_file_that_is_not_what_it_was_called_stops_everything(session: Session, kind: str) -> None:
    good = {"slurm": "sacct.txt", "nextflow": "nextflow.csv", "gnutime": "gnutime_load.txt"}[kind]
    code, lines, errors = session.run("--from", kind, str(FIXTURES / good), session.file(b"\xff\x00noise\n" * 9))
    assert (2, [], 1) == (code, lines, len(errors))
    assert [] == list(session.store().runs())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        ("", "is empty, so there is nothing to import"),
        ("a b c\n", "its format is not recognised. Name it with --from KIND"),
        (b"\x00\xff\xfe\x80" * 99, "its format is not recognised. Name it with --from KIND"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_and_nothing_is_kept(
    session: Session, content: str | bytes | None, why: str
) -> None:
    path = str(session.folder / "missing") if content is None else session.file(content)
    code, lines, errors = session.run(str(FIXTURES / "sacct.txt"), path)
    assert (2, [], 1) == (code, lines, len(errors))
    assert errors[0].startswith(f"jobmeter: {path}: {why}")
    assert [] == list(session.store().runs())


def test_an_unknown_kind_is_refused(session: Session) -> None:
    code, _, errors = session.run("--from", "pbs", str(FIXTURES / "sacct.txt"))
    assert (2, 1) == (code, len(errors))
    assert "invalid choice: 'pbs'" in errors[0]


def test_no_file_is_refused(session: Session) -> None:
    assert (2, [], ["jobmeter: the following arguments are required: FILE. See `jobmeter import --help`."]) == (
        session.run()
    )

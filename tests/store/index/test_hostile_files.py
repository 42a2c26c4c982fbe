"""Files that are no journals, or too much of one: each is named and skipped, and hides no other."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from jobmeter.journal import lines as journal_lines
from jobmeter.journal.writer import SCHEMA
from tests.parts import need_root
from tests.running import NOBODY, ROOT, environment, workplace
from tests.runs import record
from tests.store.kept import header, ids, journal_of, kept, one_file, opened

pytestmark = pytest.mark.no_records


def warned(folder: Path) -> list[str]:
    """What the store warns of; it has the healthy run."""
    warnings: list[str] = []
    assert "aaa1" in ids(opened(folder, warnings))
    return warnings


def test_a_pipe_without_a_writer_is_skipped_at_once(tmp_path: Path) -> None:
    kept(tmp_path, record("aaa1"))
    os.mkfifo(tmp_path / "journal" / "pipe.jsonl")
    assert [f"{tmp_path}/journal/pipe.jsonl: is not a regular file"] == warned(tmp_path)


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/passwd", "index.db", "../index.db", "nowhere", "link.jsonl"])
def test_a_link_is_not_followed(tmp_path: Path, target: str) -> None:
    kept(tmp_path, record("aaa1"))
    os.symlink(target, tmp_path / "journal" / "link.jsonl")
    assert [f"{tmp_path}/journal/link.jsonl: is a symbolic link, which is not followed"] == warned(tmp_path)


def test_a_name_that_is_not_utf_8_is_named_and_skipped(tmp_path: Path) -> None:
    kept(tmp_path, record("aaa1"))
    journal = journal_of(tmp_path, "aaa1").read_bytes()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/journal/caf\xe9.jsonl")).write_bytes(journal)
    (warning,) = warned(tmp_path)
    assert warning.endswith("is left out, because its name is not UTF-8")


@pytest.mark.parametrize("name", ["a\nb", "\n", "a\x1b[31m\r", "-rf", "a'; drop table job_metadata; --", "%00", "*"])
def test_a_journal_of_any_name_is_read_changed_and_removed(tmp_path: Path, name: str) -> None:
    kept(tmp_path, record("aaa1"))
    named = tmp_path / "journal" / f"{name}.jsonl"
    named.write_bytes(journal_of(tmp_path, "aaa1").read_bytes().replace(b"aaa1", b"bbb2"))
    with named.open("a") as file:
        file.write("{torn\n")
    warnings: list[str] = []
    store = opened(tmp_path, warnings)
    assert {"aaa1", "bbb2"} == set(ids(store))
    assert [True] == [warning.startswith(f"{named}: line ") for warning in warnings]
    store.relabel("bbb2", {"team": "b"})
    assert {"team": "b"} == store.record("bbb2")["labels"]
    store.remove("bbb2")
    assert (["aaa1"], False) == (ids(opened(tmp_path, [])), named.exists())


def test_a_warning_of_a_name_with_line_ends_is_one_line(tmp_path: Path) -> None:
    kept(tmp_path, record("aaa1"))
    (tmp_path / "journal" / "a\njobmeter: all runs were removed\n.jsonl").write_bytes(b"{torn\n")
    command = [sys.executable, "-m", "jobmeter", "ls", "--store", str(tmp_path)]
    settings = {**os.environ, "PYTHONPATH": f"{ROOT}/src"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert "a\\njobmeter: all runs" in line
    assert "aaa1" in done.stdout


def test_a_journal_that_another_user_may_not_read_hides_no_other() -> None:
    folder = Path(workplace())
    kept(folder, record("aaa1"))
    bad = journal_of(folder, "bbb2")
    bad.write_bytes(b"")
    os.chmod(bad, 0)
    need_root("to become another user")
    for path in (folder, folder / "journal", journal_of(folder, "aaa1")):  # as stores were before they were private
        path.chmod(0o755)
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            lines: list[str] = []
            listed = ids(opened(folder, lines))
            os.write(writable, "\n".join([*listed, *lines]).encode())
        finally:
            os._exit(0)
    os.close(writable)
    os.waitpid(child, 0)
    with open(readable) as answer:
        assert ["aaa1", f"{bad}: Permission denied"] == answer.read().splitlines()


@pytest.mark.parametrize("ends", [True, False], ids=["with an end", "without an end"])
def test_a_very_long_line_is_skipped_in_bounded_memory(tmp_path: Path, ends: bool) -> None:
    kept(tmp_path, record("aaa1"))
    lines = [{"schema": SCHEMA, **header("bbb2")}, {"columns": ["a"]}]
    path = one_file(tmp_path, "bbb2", lines)
    with path.open("ab") as file:
        file.truncate(file.tell() + (1 << 30))  # zeros that take no disk
        file.seek(0, os.SEEK_END)
        if ends:
            file.write(b"\n" + json.dumps({"record": record("bbb2")}).encode() + b"\n")
    command = [sys.executable, "-m", "jobmeter", "ls", "--json", "--store", str(tmp_path)]
    most = 700 << 20
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )  # fmt: skip
    status = {row["id"]: row["status"] for row in json.loads(done.stdout)}
    assert {"aaa1": "completed", "bbb2": "completed" if ends else "lost"} == status
    assert f"{path}: line 3 is longer than 64 MiB and was skipped" in done.stderr


def test_the_runs_after_a_line_that_is_too_long_are_shown_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("jobmeter.journal.reader", "jobmeter.store.index.scan"):
        monkeypatch.setattr(f"{module}.LONGEST_LINE", 5000)
    monkeypatch.setattr(journal_lines.read_lines, "__defaults__", (5000,))
    one_file(tmp_path, "bbb2", [
        {"schema": SCHEMA, "id": "bbb2", "name": "x"}, {"columns": ["a" * 6000]}, [1.0, 1, 5],
        {"record": record("bbb2")},
    ])  # fmt: skip
    warnings: list[str] = []
    store = opened(tmp_path, warnings)
    assert (["bbb2"], record("bbb2")) == (ids(store), store.record("bbb2"))
    assert "line 2 is longer than" in warnings[0]
    assert 2 == len(store.journal("bbb2").problems)


def test_a_copy_of_a_run_in_another_file_does_not_hide_it(tmp_path: Path) -> None:
    kept(tmp_path, record("aaa1", "original"))
    for name in ("AAA", "zzz"):
        one_file(tmp_path, name, [{"schema": SCHEMA, **header("aaa1")}, {"record": record("aaa1", "copy")}])
    expected = [f"{name}.jsonl: run aaa1 is left out: it is in aaa1.jsonl" for name in ("AAA", "zzz")]
    assert expected == warned(tmp_path)
    assert "original" == opened(tmp_path).record("aaa1")["name"]
    (tmp_path / "index.db").unlink()
    assert {"aaa1"} == {line.split()[2] for line in warned(tmp_path)}
    assert "original" == opened(tmp_path).record("aaa1")["name"]


@pytest.mark.parametrize("run_id", ["../x", "a/b", "", "x" * 65, None, 5, "\ud800"])
def test_an_id_that_could_be_no_id_is_named_and_skipped(tmp_path: Path, run_id: object) -> None:
    kept(tmp_path, record("aaa1"))
    one_file(tmp_path, "bad", [{"schema": SCHEMA, "id": run_id, "name": "x"}])
    (warning,) = warned(tmp_path)
    assert "bad.jsonl: line 1" in warning


def test_a_run_whose_header_is_torn_is_shown_by_its_record(tmp_path: Path) -> None:
    lines = [{"schema": SCHEMA, "shared": {}}, {"schema": SCHEMA, **header("bbb2")}, {"record": record("bbb2")}]
    path = one_file(tmp_path, "many", lines)
    text = path.read_bytes().replace(b'": "', b'":"').replace(b'", "', b'","')
    path.write_bytes(text.replace(b'"name":"train"', b'"na"me":"train"', 1))
    store = opened(tmp_path)
    assert record("bbb2") == store.record("bbb2")
    assert ["line 2 is not the header of a journal"] == [text.split(": ")[1] for text in store.journal("bbb2").problems]


def test_a_header_with_null_for_its_name_is_named_and_skipped(tmp_path: Path) -> None:
    kept(tmp_path, record("aaa1"))
    (tmp_path / "journal" / "x.jsonl").write_text('{"schema":"jobmeter.journal/1","id":"x","name":null}\n')
    path = f"{tmp_path}/journal/x.jsonl"
    assert [f"{path}: line 1 was skipped: header.name is null, not a text; run x is left out"] == warned(tmp_path)

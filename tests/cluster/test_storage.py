"""The samples of a cluster in the store."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from jobmeter.analyse.cluster.model import History, Waiting
from jobmeter.analyse.cluster.report import cluster_report
from jobmeter.analyse.cluster.thresholds import DEFAULT
from jobmeter.cluster.storage import SampleFile, path_of, read_samples, resolve_id
from jobmeter.errors import StoreError, UsageError
from jobmeter.report.cluster.page import cluster_page
from tests.analyse.cluster.histories import history, values
from tests.records import violations_of_schema
from tests.small_disk import empty, fill, small_disk

HEADLESS = b'{"schema":"jobmeter.cluster-samples/1","id":"a"}\n'
ABOUT = {
    "id": "abc", "engine": "ray", "address": "head:6379", "started": "2026-01-31T12:00:00.000Z",
    "interval_seconds": 10.0,
}  # fmt: skip


def written(store: Path, run_id: str = "abc") -> tuple[str, dict[str, object]]:
    """A file with samples in which nodes and tasks come and go; its path, and the report of what was put there."""
    made = history(
        {"a": values(used=1.25)},
        {"a": values(used=2.0), "b": {"used_cpus": 0.123456789}},
        {"b": {"used_cpus": 1.0, "spilled_bytes": 3.0 * 2**30}},
        tasks=[{}, {"fit": {"running": 2.0}}, {"fit": {"running": 1.0, "used_cpus": 0.5}}],
        waiting=[(), (Waiting({"cpus": 1.0, "custom.pipe": 2.0}, 7),), ()],
        requests={"fit": {"cpus": 1.0}},
    )
    made.nodes["a"] = made.nodes["a"]._replace(left=15.0, lost="gone")
    file = SampleFile(str(store), {**ABOUT, "id": run_id})
    for sample in made.samples:
        file.add(made, sample)
    file.end({"ended": "2026-01-31T12:01:00.000Z", "notes": ["a note"]})
    about = {**ABOUT, "id": run_id, "ended": "2026-01-31T12:01:00.000Z", "notes": ["a note"]}
    return file.path, dict(cluster_report(made, about, DEFAULT))


def test_what_was_written_makes_the_same_report(tmp_path: Path) -> None:
    path, expected = written(tmp_path)
    about, read = read_samples(path)
    report = cluster_report(read, about, DEFAULT)
    assert expected == report
    assert [] == violations_of_schema("cluster", report)


def test_a_file_that_was_cut_off_has_all_samples_before(tmp_path: Path) -> None:
    path, _ = written(tmp_path)
    lines = Path(path).read_bytes().splitlines(keepends=True)
    Path(path).write_bytes(b"".join(lines[:-2]) + lines[-2][:20])
    about, read = read_samples(path)
    assert (2, "ended" in about) == (len(read.samples), False)


@pytest.mark.parametrize(
    "line",
    [
        b"[]", b"7", b"null", b'"text"', b'{"node":7}', b'{"node":{"id":"a"}}', b'{"node":{"id":"a","joined":"x"}}',
        b'{"columns":[]}', b'{"columns":{"n a":7}}', b'{"requests":[1]}', b'{"requests":{"fit":{"cpus":"many"}}}',
        b'{"at":"x","span":1}', b'{"at":1}', b'{"at":99,"span":-5}', b'{"at":99,"span":1,"n a":[[]]}',
        b'{"at":99,"span":1,"n none":[1]}', b'{"at":99,"span":1,"waiting":[[1,2]]}', b'{"at":1,"span":1}',
        b'{"ended":7}', b'{"ended":{"monitor_cpu_seconds":"x"}}', b"\xff\xfe", b'{"at":',
        b'{"at":1e400,"span":1}', b'{"at":NaN,"span":1}', b'{"at":99,"span":1' + b"0" * 400 + b"}",
        b'{"at":99,"span":1,"n a":[Infinity]}', b'{"at":99,"span":1,"waiting":[[{},1e400]]}',
        b'{"requests":{"fit":{"cpus":1' + b"0" * 400 + b"}}}", b'{"ended":{"monitor_cpu_seconds":NaN}}',
    ],
)  # fmt: skip
def test_a_line_that_is_not_ours_is_skipped_and_all_others_count(tmp_path: Path, line: bytes) -> None:
    path, expected = written(tmp_path)
    lines = Path(path).read_bytes().splitlines(keepends=True)
    Path(path).write_bytes(b"".join([*lines[:-1], line + b"\n", lines[-1]]))
    about, read = read_samples(path)
    assert expected == cluster_report(read, about, DEFAULT)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, "256k") as disk:
        yield disk


def changing() -> History:
    """Five samples; from the second on there are many more nodes and tasks, and node a has other values."""
    many = {f"n{number}": values(used=2.0) for number in range(100)}
    tasks = {f"t{number}": {"running": 1.0, "used_cpus": 3.0} for number in range(100)}
    later = {"a": {"used_cpus": 4.0, "spilled_bytes": 5.0}, **many}
    return history({"a": values(used=1.0)}, *[later] * 4, tasks=[{}, *[tasks] * 4], requests={"t1": {"cpus": 1.0}})


def test_samples_after_a_full_disk_have_their_own_nodes_and_values(disk: Path) -> None:
    made = changing()
    file = SampleFile(str(disk), ABOUT)
    first, *lost, fourth, fifth = made.samples
    file.add(history(first.nodes), first)
    fill(disk)  # of the next sample, the beginning still fits into the last block of the file
    for sample in lost:
        file.add(made, sample)
    assert f"{file.path}: No space left on device" == file.failed
    empty(disk)
    file.add(made, fourth)
    file.add(made, fifth)
    file.end({"ended": "2026-01-31T12:01:00.000Z"})
    about, read = read_samples(file.path)
    assert [first, fourth, fifth] == read.samples
    assert (made.nodes, made.requests) == (read.nodes, read.requests)
    assert "2026-01-31T12:01:00.000Z" == about["ended"]


def test_a_header_that_found_no_space_comes_before_the_first_sample_that_does(disk: Path) -> None:
    made = changing()
    fill(disk)
    file = SampleFile(str(disk), ABOUT)
    file.add(made, made.samples[0])
    empty(disk)
    file.add(made, made.samples[1])
    file.end({})
    about, read = read_samples(file.path)
    assert ("abc", [made.samples[1]]) == (about["id"], read.samples)


def test_the_file_of_a_private_store_is_its_users_alone(tmp_path: Path) -> None:
    path, _ = written(tmp_path / "store")
    assert (0o600, 0o700) == (Path(path).stat().st_mode & 0o777, Path(path).parent.stat().st_mode & 0o777)


@pytest.mark.parametrize("content", [b"", b"{}\n", b'{"schema":"jobmeter.journal/1"}\n', b"\xff\n", HEADLESS])
def test_another_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"x\.jsonl: (line 1 is not|line 1 lacks|it is empty)") as refused:
        read_samples(str(path))
    assert 1 == len(refused.value.lines)


def test_one_is_named_by_id_by_its_beginning_or_as_the_last(tmp_path: Path) -> None:
    for number, name in enumerate(("abc", "abd", "xyz")):
        path, _ = written(tmp_path, name)
        os.utime(path, (number, number))
    store = str(tmp_path)
    assert ["abc", "xyz", "xyz"] == [resolve_id(store, text) for text in ("abc", "x", "last")]
    for text, why in (("ab", "several begin like that"), ("q", "there is none of this id")):
        with pytest.raises(UsageError, match=why):
            resolve_id(store, text)
    with pytest.raises(UsageError, match="no cluster was watched with this store"):
        resolve_id(str(tmp_path / "none"), "last")
    assert path_of(store, "abc").endswith("/cluster/abc.jsonl")


STRANGE: list[Any] = [None, [], {}, "x", -1, True, 1e308, float("nan"), float("inf"), 10**400]


def mutated(value: Any, chance: Random) -> Any:
    """The value of JSON with some of its parts replaced."""
    if chance.random() < 0.1:
        return chance.choice(STRANGE)
    if isinstance(value, dict):
        return {key: mutated(each, chance) for key, each in value.items()}
    return [mutated(each, chance) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(8))
def test_whatever_stands_in_a_file_it_is_reported_or_refused_in_one_line(tmp_path: Path, seed: int) -> None:
    path, _ = written(tmp_path)
    lines = [json.loads(line) for line in Path(path).read_bytes().splitlines()]
    chance = Random(seed)
    for _ in range(25):
        new = [mutated(line, chance) if chance.random() < 0.5 else line for line in lines]
        Path(path).write_text("".join(f"{json.dumps(line)}\n" for line in new))
        try:
            about, read = read_samples(path)
        except StoreError:
            continue
        report = cluster_report(read, about, DEFAULT)
        assert [] == violations_of_schema("cluster", json.loads(json.dumps(report, allow_nan=False)))
        assert "<html" in cluster_page(report, read)

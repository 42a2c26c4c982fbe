"""Files decide what runs: missing ones are refused or fail, and what is up to date does not run again."""

from __future__ import annotations

import os
import time

from tests.workflow.live import Place

SPEC = """
files: [{name: raw, path: raw.txt}, {name: mid, path: mid.txt}, {name: out, path: out.txt}]
jobs:
- {name: first, command: 'cp ${files.input.raw} ${files.output.mid}; echo first >> log'}
- {name: second, command: 'cp ${files.input.mid} ${files.output.out}; echo second >> log'}
- {name: other, command: 'echo other >> log'}
"""


def only_changed(place: Place, *options: str) -> str:
    done = place.call("run", "--only-changed", str(place.folder / "spec.yaml"), *options)
    assert 0 == done.returncode, done.stderr
    return done.stdout + done.stderr


def test_an_input_that_nobody_makes_is_refused_before_anything_starts(place: Place) -> None:
    done = place.run(SPEC)
    assert (2, False) == (done.returncode, (place.folder / "log").exists())
    assert "job 'first' needs " in done.stderr
    assert "raw.txt, which is not there, and no job has it as an output" in done.stderr
    assert not place.store.exists()


def test_an_output_that_is_not_made_fails_the_job(place: Place) -> None:
    done = place.run("files: [{name: o, path: o.txt}]\njobs:\n- {name: a, command: 'true', output_files: o}\n")
    assert 1 == done.returncode
    assert {"a": "failed"} == place.statuses()
    assert "o.txt" in done.stderr


def test_only_what_changed_runs_again(place: Place) -> None:
    place.write("1\n", "raw.txt")
    place.write(SPEC)
    only_changed(place)
    assert ["first", "other", "second"] == sorted(place.lines("log"))

    assert "all 3 jobs are done; nothing is to be run" in only_changed(place)
    assert 3 == len(place.lines("log"))

    place.write("2\n", "raw.txt")
    assert "first: its command or an input changed\nsecond: first runs again\nother: done\n" == only_changed(
        place, "--dry-run"
    )
    only_changed(place)
    assert ["2"] == place.lines("out.txt")
    assert ["first", "second"] == place.lines("log")[3:]

    place.write(SPEC.replace("echo other", "echo more"))
    only_changed(place)
    assert ["more"] == place.lines("log")[5:]


def test_an_output_that_is_older_than_its_input_is_made_again(place: Place) -> None:
    place.write("1\n", "raw.txt")
    place.write(SPEC)
    only_changed(place)
    old = time.time() - 1000
    os.utime(place.folder / "mid.txt", (old, old))

    assert "first: raw.txt is newer than mid.txt\nsecond: first runs again\nother: done\n" == only_changed(
        place, "--dry-run"
    )
    assert 0 == place.call("resume").returncode
    assert ["first", "second"] == place.lines("log")[3:]


def test_an_output_that_is_gone_is_made_again(place: Place) -> None:
    place.write("1\n", "raw.txt")
    place.write(SPEC)
    only_changed(place)
    (place.folder / "out.txt").unlink()

    assert "first: done\nsecond: out.txt is missing\nother: done\n" == only_changed(place, "--dry-run")

"""`jobmeter import DIR`: what a directory holds is imported, and what was skipped is named."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.listing import Commands
from tests.exchange.reading import FIXTURES, written
from tests.exchange.test_nextflow_task import task
from tests.parts import missing
from tests.running import NOBODY, environment, workplace
from tests.several_users import jobmeter_of
from tests.terminal import Terminal, visible


def put(jobmeter: Commands, *arguments: str) -> tuple[int, list[str], list[str]]:
    """`jobmeter import ARGUMENTS`: exit code, lines of stdout and stderr."""
    printed = jobmeter("import", *arguments)
    return printed.code, printed.out.splitlines(), printed.err.splitlines()


def duct_folder(place: Path) -> Path:
    """As con-duct leaves it: the four files of each log in `.duct/logs`."""
    logs = place / ".duct" / "logs"
    logs.mkdir(parents=True)
    for source in FIXTURES.glob("duct_*"):
        shutil.copy(source, logs / source.name.replace("duct_", "2026.11.15T21.28.36-"))
    for name in ("load", "fails", "killed"):
        written(logs, "what the job printed\n", f"2026.11.15T21.28.36-{name}_stdout")
        written(logs, "", f"2026.11.15T21.28.36-{name}_stderr")
    return place


def test_the_folder_of_con_duct(jobmeter: Commands, tmp_path: Path) -> None:
    place = str(duct_folder(tmp_path / "project"))
    assert (0, [f"{place}: logs of con-duct: 5 new, 0 known"], []) == put(jobmeter, place)
    assert (0, [f"{place}: logs of con-duct: 0 new, 5 known"], []) == put(jobmeter, place)


def test_every_file_of_a_log_stands_for_the_log(jobmeter: Commands, tmp_path: Path) -> None:
    logs = duct_folder(tmp_path) / ".duct" / "logs"
    code, lines, warnings = put(jobmeter, *sorted(map(str, logs.glob("*load*"))))
    assert (0, [f"{logs}/2026.11.15T21.28.36-load_info.json: logs of con-duct: 1 new, 0 known"], []) == (
        code, lines, warnings,
    )  # fmt: skip


def test_a_work_directory_of_nextflow_and_its_trace_are_the_same_runs(jobmeter: Commands, tmp_path: Path) -> None:
    place = tmp_path / "pipeline"
    place.mkdir()
    task(place)
    written(place, "N E X T F L O W\n", ".nextflow.log")
    header = "task_id\thash\tname\tstatus\tsubmit\trealtime\n"
    work, both = str(place / "work"), str(place)
    assert (0, [f"{work}: task directories of Nextflow: 1 new, 0 known"], []) == put(jobmeter, work)
    written(
        place,
        f"{header}1\tab/cdef12\tALIGN (s1)\tCOMPLETED\t1714557600000\t30s\n"
        "2\t12/345678\tSORT\tCOMPLETED\t1714557600000\t3s\n",
        "trace.txt",
    )
    assert (
        0,
        [
            f"{both}: a trace of Nextflow: 1 new, 1 known",
            f"{both}: task directories of Nextflow: 0 new, 1 known",
        ],
        [f"jobmeter: {both}/.nextflow.log: skipped: its format is not recognised"],
    ) == put(jobmeter, both)


def test_a_folder_of_gnu_time_files(jobmeter: Commands, tmp_path: Path) -> None:
    if shutil.which("time") is None:
        missing("GNU time is not installed")
    for number in range(3):
        (tmp_path / "runs" / str(number)).mkdir(parents=True)
        report = str(tmp_path / "runs" / str(number) / "sleep.time")
        subprocess.run(["time", "-v", "-o", report, "sleep", "0"], check=True)
    place = str(tmp_path / "runs")
    assert (0, [f"{place}: GNU `time -v`: 3 new, 0 known"], []) == put(jobmeter, place)


def test_what_is_skipped_is_named_with_the_reason(jobmeter: Commands, tmp_path: Path) -> None:
    place = tmp_path / "mixed"
    place.mkdir()
    shutil.copy(FIXTURES / "sacct.txt", place)
    (place / "link").symlink_to("/etc/passwd")
    os.mkfifo(place / "pipe")
    written(place, "", "empty")
    written(place, b"\x00\xff" * 99, "binary")
    code, lines, warnings = put(jobmeter, str(place))
    assert (0, 1) == (code, len(lines))
    assert [
        f"jobmeter: {place}/binary: skipped: its format is not recognised",
        f"jobmeter: {place}/empty: skipped: is empty, so there is nothing to import",
        f"jobmeter: {place}/link: skipped: is a symbolic link",
        f"jobmeter: {place}/pipe: skipped: is not a regular file",
    ] == sorted(warnings)


def test_many_skipped_files_are_counted_and_json_lists_all(jobmeter: Commands, tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.mkdir()
    shutil.copy(FIXTURES / "sacct.txt", place)
    for number in range(25):
        written(place, "data\n", f"{number:02d}.dat")
    warnings = put(jobmeter, str(place))[2]
    assert (11, "jobmeter: 15 more files were skipped; --json lists all") == (len(warnings), warnings[-1])
    objects = json.loads("".join(put(jobmeter, "--json", str(place))[1]))
    assert {"file": str(place), "kind": "slurm", "new": 0, "known": 10, "unusable": 0, "unfinished": 1} == objects[0]
    assert {"file": f"{place}/24.dat", "skipped": "its format is not recognised"} == objects[-1]
    assert 26 == len(objects)


def test_only_the_kind_that_is_named_is_imported(jobmeter: Commands, tmp_path: Path) -> None:
    place = tmp_path / "mixed"
    place.mkdir()
    for name in ("sacct.txt", "nextflow_raw.txt"):
        shutil.copy(FIXTURES / name, place)
    code, lines, warnings = put(jobmeter, "--from", "slurm", str(place))
    assert (0, 1, 1) == (code, len(lines), len(warnings))
    assert f"jobmeter: {place}/nextflow_raw.txt: skipped: its format is not recognised" == warnings[0]


@pytest.mark.parametrize(
    ("names", "why"), [([], "it has no files"), (["a", "b"], "none of its 2 files is of a kind that is known")]
)
def test_a_directory_with_nothing_to_import_is_refused(
    jobmeter: Commands, tmp_path: Path, names: list[str], why: str
) -> None:
    place = tmp_path / "other"
    place.mkdir()
    for name in names:
        written(place, "text\n", name)
    code, lines, warnings = put(jobmeter, str(place))
    assert (2, [], 1) == (code, lines, len(warnings))
    assert warnings[0].startswith(f"jobmeter: {place}: {why}. Kinds: jobmeter: ")


def test_a_directory_that_cannot_be_read_is_named() -> None:
    place = Path(workplace())
    shutil.copy(FIXTURES / "sacct.txt", place)
    (place / "secret").mkdir(mode=0o000)
    done = jobmeter_of("import", "--store", f"{place}/store", str(place), user=NOBODY)
    assert (0, f"jobmeter: {place}/secret: skipped: Permission denied\n") == (done.returncode, done.stderr)


def many_times(place: Path, count: int) -> Path:
    """A folder of so many reports of GNU time."""
    place.mkdir()
    report = (FIXTURES / "gnutime_load.txt").read_text()
    for number in range(count):
        written(place, report, f"{number:04d}.time")
    return place


def test_on_a_terminal_progress_is_shown_with_the_total_and_goes_away(tmp_path: Path) -> None:
    place = many_times(tmp_path / "times", 800)
    words = [sys.executable, "-m", "jobmeter", "import", "--store", str(tmp_path / "store"), "times"]
    shown = Terminal(words, environment(), cwd=tmp_path, columns=120).finish()
    assert 0 == shown.code, shown.text
    assert re.search(r"\r\x1b\[Ktimes: [\d,]+ of 800 files", shown.text)
    assert ["times: GNU `time -v`: 800 new, 0 known", ""] == visible(shown.text)
    assert (0, [f"{place}: GNU `time -v`: 800 new, 0 known"], []) == put_elsewhere(place, tmp_path / "other")


def put_elsewhere(place: Path, store: Path) -> tuple[int, list[str], list[str]]:
    """The same in a pipe."""
    words = [sys.executable, "-m", "jobmeter", "import", "--store", str(store), str(place)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()

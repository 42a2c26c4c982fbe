"""`jobmeter bench`, on loads whose true usage is known."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.terminal import Terminal
from tests.waiting import LONG
from tests.workflow.live import running_in

ROOT = Path(__file__).parents[2]
MIB = 2**20

LOAD = """
import os, sys, time
cpu_seconds, mib = float(sys.argv[1]), int(sys.argv[2])
held = bytearray(mib << 20)
held[::4096] = b"x" * len(held[::4096])
while time.process_time() < cpu_seconds:
    pass
"""


class Bench:
    """`jobmeter bench` in a directory of its own, with a load of known CPU time and memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.load = folder / "load.py"
        self.load.write_text(LOAD, encoding="utf-8")

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("JOBMETER_", "XDG_"))}
        return {**kept, "PYTHONPATH": f"{ROOT}/src", "HOME": str(self.folder), "JOBMETER_STORE": f"{self.folder}/store"}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "jobmeter", *words]

    def jobmeter(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.jobmeter("bench", *words)

    def json(self, *words: str, code: int = 0) -> dict[str, Any]:
        done = self("--json", *words)
        assert code == done.returncode, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def uses(self, cpu_seconds: float | str, mib: int | str) -> Sequence[str]:
        return ("--", sys.executable, str(self.load), str(cpu_seconds), str(mib))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def medians(result: dict[str, Any], key: str) -> list[float]:
    return [variant["figures"][key]["median"] for variant in result["variants"]]


def test_cpu_time_and_memory_are_the_true_ones_and_all_runs_are_in_the_store(bench: Bench) -> None:
    result = bench.json("--runs", "3", "--param", "mib=20,120", *bench.uses(0.4, "{mib}"))
    small, large = medians(result, "cpu_seconds")
    assert 0.4 <= small < 0.6
    assert 0.4 <= large < 0.6
    small, large = medians(result, "memory_peak_bytes")
    assert 20 * MIB < small < 60 * MIB
    assert 95 * MIB < large - small < 105 * MIB
    stored = json.loads(bench.jobmeter("ls", "--json", "--label", f"bench={result['id']}").stdout)
    assert {run["id"] for variant in result["variants"] for run in variant["runs"]} == {row["id"] for row in stored}
    assert {("mib=20", "20"), ("mib=120", "120")} == {
        (row["labels"]["variant"], row["labels"]["mib"]) for row in stored
    }
    assert "1" in {row["labels"]["bench_run"] for row in stored}


def test_variants_take_turns_and_warm_ups_do_not_count(bench: Bench) -> None:
    order = "echo {n} >>order"
    result = bench.json("--runs", "2", "--warmup", "1", "--param", "n=1,2", order)
    assert ["1", "2", "1", "2", "2", "1"] == (bench.folder / "order").read_text().split()
    assert [2, 2] == [len(variant["runs"]) for variant in result["variants"]]
    assert 4 == len(json.loads(bench.jobmeter("ls", "--json").stdout)), "warm-ups are not stored"


def test_twice_the_memory_is_a_regression_and_noise_is_none(bench: Bench) -> None:
    done = bench("--runs", "6", "--save", "before", *bench.uses(0.3, 40))
    assert 0 == done.returncode, done.stderr
    assert "saved as before: compare with it by --baseline before" in done.stderr
    name = ("-n", f"{sys.executable} {bench.load} 0.3 40")
    against = ("--runs", "6", "--baseline", "before", "--judge", "memory,cpu", "--tolerance", "40%", *name)
    same = bench.json(*against, *bench.uses(0.3, 40))
    assert 0 == same["comparison"]["regressions"]
    worse = bench.json(*against, *bench.uses(0.3, 100), code=1)
    figures = {figure["key"]: figure for figure in worse["comparison"]["figures"]}
    assert figures["memory_peak_bytes"]["is_regression"]
    assert 1.9 < figures["memory_peak_bytes"]["ratio"] < 2.4
    assert not figures["cpu_seconds"]["is_regression"]
    shown = bench(*against, *bench.uses(0.3, 100))
    assert 1 == shown.returncode
    assert "1 regression against before, beyond 40 %" in shown.stdout
    better = bench(*against, *bench.uses(0.3, 10))
    assert 0 == better.returncode
    assert "no regression against before beyond 40 %" in better.stdout


def test_a_baseline_can_be_a_file(bench: Bench) -> None:
    assert 0 == bench("-r", "4", "-o", "base.json", "true").returncode
    done = bench("-r", "4", "--baseline", "base.json", "--tolerance", "100000", "true")
    assert 0 == done.returncode
    assert "no regression against base.json beyond 100000 %" in done.stdout


def test_a_baseline_of_other_commands_is_refused_before_anything_runs(bench: Bench) -> None:
    assert 0 == bench("-r", "1", "--save", "base", "true").returncode
    done = bench("--baseline", "base", "touch ran")
    assert 2 == done.returncode
    assert "jobmeter: --baseline: base has no variant 'touch ran'. There are: true." in done.stderr
    assert not (bench.folder / "ran").exists()
    done = bench("-r", "1", "--baseline", "base", "true", "touch ran")
    assert (0, True) == (done.returncode, "touch ran: the baseline does not have it" in done.stdout)


def test_several_commands_are_compared_by_name(bench: Bench) -> None:
    done = bench("-r", "3", "-n", "slow", "-n", "quick", "sleep 0.5", "sleep 0.01 | cat")
    assert 0 == done.returncode, done.stderr
    table = done.stdout.split("\n\n")[-2].splitlines()
    assert ["variant", "wall", "cpu", "memory_peak", "speed-up"] == table[0].split()
    assert [["slow", "1.00"], ["quick"]] == [[table[1].split()[0], table[1].split()[-1]], [table[2].split()[0]]]
    assert 1.5 < float(table[2].split()[-1])


def test_efficiency_is_of_workers(bench: Bench) -> None:
    result = bench.json("-r", "2", "--param", "n=1,2", "sleep 0.4; : {n}")
    one, two = result["variants"]
    assert "n" == result["workers"]
    assert (1.0, 1.0) == (one["speed_up"], one["efficiency"])
    assert two["speed_up"] / 2 == pytest.approx(two["efficiency"])
    result = bench.json("-r", "1", "--param", "size=1,2", "sleep 0.1; : {size}")
    assert "efficiency" not in result["variants"][1], "a size is no number of workers"
    result = bench.json("-r", "1", "--param", "size=1,2", "--workers", "size", "sleep 0.1; : {size}")
    assert "efficiency" in result["variants"][1]


def test_commands_around_the_runs_are_run_with_their_parameters(bench: Bench) -> None:
    done = bench(
        "-r", "2", "--param", "n=7,8", "--setup", "echo setup {n} >>log", "--prepare", "echo prepare {n} >>log",
        "--conclude", "echo conclude {n} >>log", "--cleanup", "echo cleanup {n} >>log", "echo run {n} >>log",
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    around = [f"{what} {n}" for n in (7, 8, 8, 7) for what in ("prepare", "run", "conclude")]
    assert ["setup 7", "setup 8", *around, "cleanup 7", "cleanup 8"] == (bench.folder / "log").read_text().splitlines()


def test_a_failure_stops_it_with_the_last_words_of_the_command_and_cleans_up(bench: Bench) -> None:
    done = bench("-r", "3", "--cleanup", "touch cleaned", "echo no luck >&2; echo x >>tried; exit 3")
    assert 125 == done.returncode
    assert done.stderr.endswith("exit 3: failed with exit code 3: no luck. --ignore-failure counts such runs too.\n"), (
        done.stderr
    )
    assert 1 == len(done.stderr.splitlines())
    assert ("x\n", True) == ((bench.folder / "tried").read_text(), (bench.folder / "cleaned").exists())


def test_failures_can_be_ignored_and_are_counted(bench: Bench) -> None:
    done = bench("-r", "2", "-i", "exit 3")
    assert 0 == done.returncode
    assert "2 of 2 runs failed; their figures are included" in done.stdout
    assert 2 == bench.json("-r", "2", "-i", "exit 3")["variants"][0]["failed"]


@pytest.mark.parametrize("hook", ["--setup", "--prepare", "--conclude", "--cleanup"])
def test_a_command_around_the_runs_that_fails_is_named(bench: Bench, hook: str) -> None:
    done = bench("-r", "1", hook, "echo broken >&2; exit 4", "true")
    assert (125, f"jobmeter: {hook} of true failed with exit code 4: broken [echo broken >&2; exit 4]\n") == (
        done.returncode,
        done.stderr,
    )


def test_the_results_are_written_by_extension(bench: Bench) -> None:
    names = ["r.md", "r.json", "r.csv", "r.html"]
    done = bench("-r", "6", "--param", "n=1,2", *(word for name in names for word in ("-o", name)), "echo '<b>' {n}")
    assert 0 == done.returncode, done.stderr
    table = (bench.folder / "r.md").read_text().splitlines()
    assert "| variant | wall | cpu | memory_peak | speed-up | efficiency |" == table[0]
    assert table[2].startswith("| `n=1` | ")
    assert 2 == len(json.loads((bench.folder / "r.json").read_text())["variants"])
    with (bench.folder / "r.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [("n=1", "1", "6"), ("n=2", "2", "6")] == [(row["variant"], row["parameter_n"], row["runs"]) for row in rows]
    assert float(rows[0]["wall_seconds_low"]) <= float(rows[0]["wall_seconds_median"])
    page = (bench.folder / "r.html").read_text()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert 12 <= page.count('class="dot')


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no command given"),
        (["--"], "there is no command after `--`"),
        (["-o", "x.txt", "true"], "the extension says what to write, and is one of .md, .json, .csv, .html"),
        (["-o", "/nowhere/x.md", "true"], "cannot be written there"),
        (["--runs", "0", "true"], "--runs: '0' is not a whole number above 0"),
        (["--warmup", "-1", "true"], "--warmup: '-1' is not a whole number from 0 up"),
        (["--param", "n", "true {n}"], "'n' is not NAME=VALUE,VALUE"),
        (["--param", "n=1,1", "true {n}"], "a value is there twice"),
        (["--param", "n=1", "--param", "n=2", "true {n}"], "a parameter is given twice"),
        (["--param", "n=1,2", "true"], "'n' is used nowhere"),
        (["--param", "n=1:5000", "true {n}"], "this makes 5,000 variants, and 1000 is the most"),
        (["--workers", "m", "--param", "n=1,2", "true {n}"], "there is no parameter 'm'"),
        (["--workers", "n", "--param", "n=a,b", "true {n}"], "are not whole numbers above 0"),
        (["-n", "a", "-n", "b", "true"], "2 names for 1 commands"),
        (["true", "true"], "'true' is run twice"),
        (["--baseline", "nope", "true"], "there is no benchmark 'nope'. `--save NAME` saves one."),
        (["--baseline", "nope.json", "true"], "nope.json: no such file"),
        (["--baseline", "load.py/", "true"], "Not a directory"),
        (["--tolerance", "5", "true"], "--tolerance: has no effect without --baseline NAME"),
        (["--baseline", "x", "--tolerance", "-5", "true"], "'-5' is not a percentage"),
        (["--baseline", "x", "--judge", "joy", "true"], "'joy' is not one of wall, cpu, memory_peak, read, write"),
        (["--save", "a/b", "true"], "cannot be the name of a benchmark"),
        (["--mount", "a:b", "true"], "--mount: has no effect without --container IMAGE"),
        (["--shell", "none", "echo 'x"], "cannot be split into words"),
        (["--rnus", "3", "true"], "Did you mean '--runs'?"),
    ],
)
def test_bad_input_is_refused_in_one_line_and_nothing_runs(bench: Bench, words: list[str], message: str) -> None:
    done = bench(*words)
    assert (2, "", 1) == (done.returncode, done.stdout, len(done.stderr.splitlines())), done.stderr
    assert message in done.stderr
    assert not (bench.folder / "store").exists()


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": "jobmeter.bench/9"}', '{"schema": "jobmeter.bench/1"}'])
def test_a_damaged_baseline_is_refused_before_anything_runs(bench: Bench, content: str) -> None:
    (bench.folder / "base.json").write_text(content)
    done = bench("--baseline", "base.json", "touch ran")
    assert (2, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert "base.json: it is no benchmark" in done.stderr
    assert not (bench.folder / "ran").exists()


def test_a_program_that_does_not_exist_is_as_for_run(bench: Bench) -> None:
    done = bench("--", "nosuchprogram")
    assert (127, "jobmeter: nosuchprogram: command not found\n") == (done.returncode, done.stderr)


def test_secrets_are_hidden_in_results_too(bench: Bench) -> None:
    done = bench("-r", "1", "-o", "r.json", "true --password=hunter2")
    assert "hunter2" not in done.stdout + (bench.folder / "r.json").read_text()


def test_a_terminal_has_a_bar_and_ctrl_c_ends_all_of_it(bench: Bench) -> None:
    terminal = Terminal(
        bench.command("bench", "--cleanup", f"touch {bench.folder}/cleaned", "sleep 300"), bench.environment()
    )
    terminal.wait_for("0/10")
    terminal.press("\x03")
    assert 130 == terminal.process.wait(LONG), terminal.plain
    assert "Traceback" not in terminal.plain
    terminal.close()
    assert (bench.folder / "cleaned").exists()


INTERRUPTED = """
import os, signal, sys
from jobmeter.launch import spawn
execute = spawn.LaunchedJob.execute
def execute_and_interrupt(job):
    execute(job)
    os.kill(os.getpid(), signal.SIGINT)
spawn.LaunchedJob.execute = execute_and_interrupt
from jobmeter.cli.main import main
sys.exit(main(["bench", "sleep 300"]))
"""


def test_an_interrupt_while_a_job_starts_leaves_nothing_running(bench: Bench) -> None:
    words = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(words, cwd=bench.folder, env=bench.environment(), timeout=LONG, check=False)
    assert 130 == done.returncode
    assert [] == running_in(bench.folder)

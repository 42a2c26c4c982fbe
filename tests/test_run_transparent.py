"""A job under `jobmeter run` behaves as it does without: exit codes, signals, terminal, pipes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.parts import need_root
from tests.running import USERS, command_line, environment, interpreter, jobmeter, meter, workplace
from tests.terminal import Terminal
from tests.waiting import LONG, lives, wait_for


def test_every_exit_code_passes_through() -> None:
    def code_of(code: int) -> int:
        return jobmeter("run", "--quiet", "--", "sh", "-c", f"exit {code}").returncode

    with ThreadPoolExecutor(2) as pool:
        assert list(range(256)) == list(pool.map(code_of, range(256)))


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "ABRT", "HUP", "INT"])
def test_a_signal_that_kills_the_job_is_reported_as_128_plus_its_number(name: str) -> None:
    number = int(getattr(signal, f"SIG{name}"))
    done = meter("sh", "-c", f"kill -{name} $$")
    assert done.exit_code == 128 + number
    assert done.record["outcome"] == {"status": "killed", "exit_code": None, "signal": number}
    assert f"killed by SIG{name}" in done.stderr


def test_stdin_is_the_jobs_own() -> None:
    assert jobmeter("run", "--quiet", "--", "cat", input="through a pipe").stdout == "through a pipe"


def test_options_after_the_command_are_the_commands() -> None:
    assert jobmeter("run", "--", "ls", "--help").stdout.startswith("Usage: ls")
    assert jobmeter("run", "ls", "--help").stdout.startswith("Usage: ls")


def test_quiet_prints_nothing() -> None:
    assert jobmeter("run", "--quiet", "--", "true").stderr == ""


def test_the_environment_and_directory_of_the_job_are_as_without() -> None:
    odd = {**environment(), "odd.name": "1", "EMPTY": ""}
    folder = workplace()
    bare = subprocess.run(["env"], env=odd, cwd=folder, capture_output=True, check=True).stdout
    metered = subprocess.run(
        command_line(["run", "--quiet", "--store", folder, "--", "env"]),
        env=odd,
        cwd=folder,
        capture_output=True,
        check=True,
    ).stdout
    assert bare == metered
    assert jobmeter("run", "--quiet", "--store", folder, "pwd", cwd=folder).stdout == f"{folder}\n"


def test_signal_dispositions_of_the_job_are_as_without() -> None:
    command = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]
    bare = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    metered = jobmeter("run", "--quiet", "--", *command).stdout
    # Less 32 and 33, which glibc keeps for itself and leaves ignored or not as it happens to spawn.
    kept = ~(0b11 << 31)
    bare_masks, metered_masks = (
        [int(line.split()[1], 16) & kept for line in text.splitlines()] for text in (bare, metered)
    )
    assert bare_masks == metered_masks


@pytest.mark.parametrize("shepherd", ["compiled", "python"])
def test_blocked_and_ignored_signals_reach_the_job_as_they_were(shepherd: str) -> None:
    caller = (
        "import os, signal, sys\n"
        "for number in map(int, filter(None, sys.argv[2].split(','))): signal.signal(number, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_SETMASK, set(map(int, filter(None, sys.argv[1].split(',')))))\n"
        "os.execvp(sys.argv[3], sys.argv[3:])\n"
    )
    chance = random.Random(10)
    settings = {**environment(), "HOME": workplace(), "JOBMETER_SHEPHERD": shepherd}
    # Python itself ignores SIGPIPE and SIGXFSZ: whether its caller did is not known.
    free = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ})
    for _ in range(25):
        blocked, ignored = (sorted(chance.sample(free, chance.randrange(6))) for _ in range(2))
        words = command_line(["run", "--quiet", "--", "cat", "/proc/self/status"])
        lists = [",".join(str(int(number)) for number in numbers) for numbers in (blocked, ignored)]
        done = subprocess.run(
            [interpreter(), "-c", caller, *lists, *words],
            env=settings, check=True, capture_output=True, text=True, timeout=LONG,
        )  # fmt: skip
        # 32 and 33 are of glibc, whose posix_spawn leaves them ignored.
        status = dict(line.split(":", 1) for line in done.stdout.splitlines())
        shown = [int(status[name], 16) & ~(0b11 << 31) for name in ("SigBlk", "SigIgn")]
        expected = [sum(1 << (number - 1) for number in numbers) for numbers in (blocked, ignored)]
        assert shown == expected, lists


def test_no_descriptor_of_jobmeters_is_open_in_the_job() -> None:
    listed = jobmeter("run", "--quiet", "--", "ls", "/proc/self/fd").stdout.split()
    assert listed == ["0", "1", "2", "3"]  # 3 is the directory that ls reads


def test_a_script_without_interpreter_line_is_run_by_sh() -> None:
    folder = workplace()
    with open(f"{folder}/script", "w", encoding="ascii") as file:
        file.write("echo from a plain script $1\nexit 5\n")
    os.chmod(f"{folder}/script", 0o755)
    done = jobmeter("run", "--quiet", "--", "./script", "word", cwd=folder)
    assert ("from a plain script word\n", 5) == (done.stdout, done.returncode)


def on_terminal(words: list[str]) -> Terminal:
    return Terminal(words, {**environment(), "HOME": workplace()})


ASK_TTY = "import os; print([os.isatty(n) for n in range(3)], os.tcgetpgrp(0) == os.getpgrp())"


def test_in_a_terminal_the_job_has_the_terminal_in_its_foreground() -> None:
    terminal = on_terminal(command_line(["run", "--", interpreter(), "-c", ASK_TTY]))
    terminal.wait_for_pattern(r"\[True, True, True\] True")
    terminal.wait_for_pattern(r"completed after")
    assert terminal.exit_code() == 0


def test_ctrl_c_ends_the_shell_and_its_child_once() -> None:
    terminal = on_terminal(command_line(["run", "--", "bash", "-c", "echo started; sleep 60; echo done"]))
    terminal.wait_for_pattern("started")
    terminal.press("\x03")
    terminal.wait_for_pattern("cancelled")
    assert "done" not in terminal.plain
    assert terminal.exit_code() == 130


def test_a_signal_to_the_whole_group_cancels_the_job_also_if_that_ends_first() -> None:
    store = workplace()

    def interrupt_group(_: int) -> str:
        words = command_line(["run", "--store", store, "--", "bash", "-c", "kill -INT 0; sleep 600"])
        done = subprocess.run(words, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True)
        return done.stderr.partition(" after ")[0]

    with ThreadPoolExecutor(6) as pool:  # the machine is busy: jobmeter may hear of the signal late
        assert {"jobmeter: bash cancelled (SIGINT)"} == set(pool.map(interrupt_group, range(18)))


def test_ctrl_c_reaches_a_job_that_handles_it_once_only() -> None:
    counts = (
        "import signal, time\n"
        "got = []\n"
        "signal.signal(signal.SIGINT, lambda *_: got.append(1))\n"
        "print('ready', flush=True)\n"
        "end = time.monotonic() + 1.5\n"
        "while time.monotonic() < end: time.sleep(0.1)\n"
        "print('got', len(got), flush=True)\n"
    )
    terminal = on_terminal(command_line(["run", "--quiet", "--", interpreter(), "-c", counts]))
    terminal.wait_for_pattern("ready")
    terminal.press("\x03")
    terminal.wait_for_pattern("got 1")
    assert terminal.exit_code() == 0


def test_a_job_that_lives_with_ctrl_c_may_have_it_many_times() -> None:
    body = (
        "import signal, time\n"
        "got = []\n"
        "signal.signal(signal.SIGINT, lambda *_: (got.append(1), print('got', len(got), flush=True)))\n"
        "print('ready', flush=True)\n"
        "while len(got) < 5: time.sleep(0.1)\n"
        "time.sleep(0.1)\n"
    )
    terminal = on_terminal(command_line(["run", "--quiet", "--", interpreter(), "-c", body]))
    terminal.wait_for_pattern("ready")
    for number in range(1, 6):
        terminal.press("\x03")
        terminal.wait_for_pattern(f"got {number}")
    assert terminal.exit_code() == 0


def test_ctrl_z_stops_the_job_and_fg_brings_it_back() -> None:
    terminal = on_terminal(["bash", "--norc", "-i"])
    words = " ".join(command_line(["run", "--quiet", "--"]))
    terminal.press(f"{words} bash -c 'echo be{'gun'}; sleep 1; echo fin{'ished'}'\n")
    terminal.wait_for_pattern(r"[\r\n]begun")
    terminal.press("\x1a")
    terminal.wait_for_pattern("Stopped")
    terminal.press("fg\n")
    terminal.wait_for_pattern(r"[\r\n]finished")
    terminal.press("exit\n")
    assert terminal.exit_code() == 0


def started(*arguments: str, user: int | None = None) -> tuple[subprocess.Popen[str], str]:
    """`jobmeter ARGUMENTS` in the background, and the first line that its job printed."""
    process = subprocess.Popen(
        command_line(arguments, user), env={**environment(), "HOME": workplace()}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


TREE = "setsid sleep 100 & sleep 100 & echo $$ $!; sleep 100"


@USERS
@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT"])
def test_a_signal_to_jobmeter_ends_all_of_the_job(name: str, user: int) -> None:
    process, line = started("run", "--", "bash", "-c", TREE, user=user)
    pids = [int(word) for word in line.split()]
    daemon = int(
        subprocess.run(["pgrep", "-P", str(pids[0])], capture_output=True, text=True, check=True).stdout.split()[0]
    )
    process.send_signal(getattr(signal, f"SIG{name}"))
    _, stderr = process.communicate(timeout=LONG)
    assert 128 + getattr(signal, f"SIG{name}") == process.returncode
    assert "cancelled" in stderr
    assert all(not lives(pid) for pid in [*pids, daemon])


def test_a_signal_to_the_group_is_not_taken_for_a_second_one() -> None:
    body = "trap 'sleep 0.7; echo tidied up; exit 4' TERM; echo ready; while :; do sleep 0.1; done"
    process = subprocess.Popen(
        command_line(["run", "--quiet", "--", "bash", "-c", body]), env={**environment(), "HOME": workplace()},
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert "ready\n" == process.stdout.readline()
    # As timeout(1) does it: to the process, and to its group.
    process.terminate()
    os.killpg(process.pid, signal.SIGTERM)
    stdout, _ = process.communicate(timeout=LONG)
    assert "tidied up" in stdout


def test_who_reads_the_output_sees_its_end_when_the_job_closes_it() -> None:
    process, _ = started("run", "--quiet", "--", "sh", "-c", "echo first; exec >&-; sleep 20")
    assert process.stdout is not None
    assert process.stdout.read() == ""
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=LONG)


def test_a_captured_job_whose_reader_leaves_ends_too() -> None:
    folder = workplace()
    words = " ".join(command_line(["run", "--quiet", "--capture", folder, "--", "yes"]))
    done = subprocess.run(
        ["bash", "-c", f"{words} | head -1; echo ${{PIPESTATUS[0]}}"],
        env=environment(), check=True, timeout=LONG, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.split() == ["y", str(128 + signal.SIGPIPE)]


def test_few_descriptors_do_not_keep_a_signal_from_the_job() -> None:
    body = "for i in $(seq 150); do sleep 60 & done; echo ready; wait"
    words = " ".join(command_line(["run", "--quiet", "--", "bash", "-c", f"'{body}'"]))
    process = subprocess.Popen(
        ["bash", "-c", f"ulimit -n 64; exec {words}"], env={**environment(), "HOME": workplace()},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    # Half of the descriptors are for files of /proc, which it keeps open.
    wait_for(lambda: len(os.listdir(f"/proc/{process.pid}/fd")) > 32, "the meter to have few descriptors left")
    process.terminate()
    assert process.wait(LONG) == 143
    process.stdout.close()


def test_usr1_reaches_the_main_process_alone() -> None:
    body = "trap 'echo got it; exit 7' USR1; sleep 100 & echo ready $!; wait"
    process, line = started("run", "--quiet", "--orphans", "end", "--", "bash", "-c", body)
    process.send_signal(signal.SIGUSR1)
    stdout, _ = process.communicate(timeout=LONG)
    assert ("got it\n", 7) == (stdout, process.returncode)
    assert not lives(int(line.split()[1]))


def test_a_job_that_ignores_term_is_killed_by_the_second() -> None:
    process, line = started("run", "--", "bash", "-c", "trap '' TERM; echo $$; while :; do sleep 0.1; done")
    process.send_signal(signal.SIGTERM)
    time.sleep(1.2)  # the first does not kill it; one that comes within a second of the first counts as the same
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LONG)
    assert process.returncode == 137
    assert not lives(int(line))


def test_what_a_job_leaves_running_is_ended_on_request() -> None:
    process, line = started("run", "--orphans", "end", "--", "sh", "-c", "setsid sleep 100 >/dev/null 2>&1 & echo $!")
    process.communicate(timeout=LONG)
    assert process.returncode == 0
    assert not lives(int(line))


def test_what_a_job_leaves_running_goes_on_as_a_child_of_init() -> None:
    process, line = started("run", "--", "sh", "-c", "sleep 5 >/dev/null 2>&1 & echo $!")
    _, stderr = process.communicate(timeout=LONG)
    assert process.returncode == 0
    assert "1 process still runs and was left alone" in stderr
    assert lives(int(line))
    os.kill(int(line), signal.SIGKILL)


def test_the_job_survives_a_kill_of_jobmeter_and_the_journal_is_readable() -> None:
    from jobmeter.journal.reader import read_journal

    folder = workplace()
    options = ["--store", folder, "--interval", "0.1", "--window", "0.2"]
    body = "echo $$; while [ ! -e $0/go ]; do sleep 0.05; done; : > $0/done"
    process, line = started("run", *options, "--", "sh", "-c", body, folder)
    (name,) = os.listdir(f"{folder}/journal")
    wait_for(lambda: len(read_journal(f"{folder}/journal/{name}").windows) >= 2, "two windows")
    process.kill()
    process.wait()  # and not for the end of its output, which the job has too
    journal = read_journal(f"{folder}/journal/{name}")
    assert journal.record is None
    assert len(journal.windows) >= 2
    assert journal.problems == []
    assert lives(int(line))
    Path(folder, "go").touch()
    wait_for(lambda: os.path.exists(f"{folder}/done"), "the end of the job")
    wait_for(lambda: not lives(int(line)), "the end of its process")
    process.communicate()


def test_window_changes_reach_the_job() -> None:
    body = (
        "import os, signal, time\n"
        "seen = []\n"
        "signal.signal(signal.SIGWINCH, lambda *_: seen.append(os.get_terminal_size(0).columns))\n"
        "print('ready', flush=True)\n"
        "while not seen: time.sleep(0.05)\n"
        "print('now', seen[0], flush=True)\n"
    )
    terminal = on_terminal(command_line(["run", "--quiet", "--", interpreter(), "-c", body]))
    terminal.wait_for_pattern("ready")
    terminal.resize(lines=40, columns=123)
    terminal.wait_for_pattern("now 123")
    assert terminal.exit_code() == 0


def test_a_jobmeter_that_was_killed_within_a_job_leaves_no_group_behind() -> None:
    report = f"{workplace()}/r.json"
    inner = " ".join(command_line(["run", "--quiet", "--store", workplace(), "--", "sleep", "1"]))
    body = f"{inner} & sleep 0.7; kill -9 $!; sleep 1"
    process, _ = started("run", "--orphans", "wait", "--report", report, "--", "bash", "-c", f"echo started; {body}")
    process.communicate(timeout=LONG)
    left = subprocess.run(
        ["find", "/sys/fs/cgroup", "-name", f"jobmeter-{process.pid}-*"], capture_output=True, text=True, check=False
    )
    assert left.stdout == ""


def test_a_group_left_in_another_pid_namespace_is_removed_by_the_next_run() -> None:
    need_root("for a pid namespace")
    folder = workplace()
    words = command_line(["run", "--quiet", "--store", folder, "--", "sh", "-c", f": > {folder}/started; sleep 100"])
    # All that is in the namespace ends with its first process, which is this jobmeter. Outside, pid 1 always lives.
    process = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", *words], env=environment())
    wait_for(lambda: os.path.exists(f"{folder}/started"), "the job runs")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (journal,) = Path(folder, "journal").iterdir()
    name = f"jobmeter-1-{journal.stem}"
    left = ["find", "/sys/fs/cgroup", "-name", name]
    assert name in subprocess.run(left, capture_output=True, text=True, check=False).stdout
    os.kill(int(children[0]), signal.SIGKILL)
    process.wait(LONG)
    assert jobmeter("run", "--quiet", "--", "true").returncode == 0
    assert name not in subprocess.run(left, capture_output=True, text=True, check=False).stdout

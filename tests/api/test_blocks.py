"""`jobmeter.measure` and `@jobmeter.measured`: pieces of a program whose true usage is known."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import jobmeter
from jobmeter.errors import StoreError, UsageError
from jobmeter.journal.reader import RunLocation, read_journal
from tests.running import assert_cpu_time, is_exact_cpu
from tests.waiting import LONG, wait_for

MIB = 1 << 20
BURN = "import time\nwhile time.process_time() < {}: pass"


@pytest.fixture(autouse=True)
def small_heap() -> Iterator[None]:
    """Keep the garbage collector away from what other tests left: it would take its time within a block."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def burn(seconds: float) -> float:
    """Use CPU time in this thread, and return how much it was."""
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass
    return time.thread_time() - began


def cpu(run: jobmeter.Run) -> jobmeter.Figure:
    figure = run.usage.cpu_seconds
    assert figure is not None
    return figure


def memory(run: jobmeter.Run) -> jobmeter.Figure:
    figure = run.usage.memory_peak_bytes
    assert figure is not None
    return figure


def as_program(code: str, *words: str) -> Any:
    """What a program of its own prints as JSON: one without other threads, whose memory is its own."""
    script = "import jobmeter, json, os, signal, subprocess, sys, threading, time\n" + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_block_has_its_cpu_time_and_that_of_its_threads() -> None:
    with jobmeter.measure("work", keep=False) as block:
        used = burn(0.2)
        thread = threading.Thread(target=burn, args=(0.2,))
        thread.start()
        thread.join()
    assert cpu(block.run).value == pytest.approx(used + 0.2, rel=0.03, abs=0.005)
    assert ("completed", "exact", "block_cpu_seconds") == (
        block.run.status, cpu(block.run).quality, cpu(block.run).source,
    )  # fmt: skip


def test_each_of_eight_threads_with_three_nested_blocks_has_its_own_cpu_time() -> None:
    """Each block has at least the time within it, and at most that with its own start and end."""
    within: dict[int, list[float]] = {}
    around: dict[int, list[float]] = {}
    runs: dict[int, list[jobmeter.Run]] = {}

    def work(number: int) -> None:
        outer, middle, inner = (jobmeter.measure(name, keep=False) for name in "abc")
        marks = [time.thread_time()]
        with outer:
            marks.append(time.thread_time())
            burn(0.05)
            marks.append(time.thread_time())
            with middle:
                marks.append(time.thread_time())
                burn(0.05)
                marks.append(time.thread_time())
                with inner:
                    marks.append(time.thread_time())
                    burn(0.05 + 0.02 * number)
                    marks.append(time.thread_time())
                marks.append(time.thread_time())
                marks.append(time.thread_time())
            marks.append(time.thread_time())
            marks.append(time.thread_time())
        marks.append(time.thread_time())
        around[number] = [marks[-1 - at] - marks[at] for at in (0, 2, 4)]
        within[number] = [marks[-2 - at] - marks[at + 1] for at in (0, 2, 4)]
        runs[number] = [outer.run, middle.run, inner.run]

    with jobmeter.measure("all", keep=False) as block:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in range(8):
        for least, most, run in zip(within[number], around[number], runs[number]):
            assert 0.99 * least <= cpu(run).value <= 1.01 * most
            assert is_exact_cpu(run.record)
            assert memory(run).quality == "shared"
    assert cpu(block.run).value == pytest.approx(sum(times[0] for times in around.values()), rel=0.03)
    assert memory(block.run).quality == "sampled"


def test_blocks_may_overlap_without_being_nested() -> None:
    first, second = jobmeter.measure("first", keep=False), jobmeter.measure("second", keep=False)
    first.start()
    one = burn(0.1)
    second.start()
    two = burn(0.1)
    run_of_first = first.stop()
    three = burn(0.1)
    run_of_second = second.stop()
    assert cpu(run_of_first).value == pytest.approx(one + two, rel=0.03, abs=0.004)
    assert cpu(run_of_second).value == pytest.approx(two + three, rel=0.03, abs=0.004)


def test_a_block_that_another_thread_stops_is_of_the_thread_that_started_it() -> None:
    block = jobmeter.measure(keep=False)
    other = jobmeter.measure(keep=False)
    started = threading.Event()

    def work() -> None:
        block.start()
        started.set()
        burn(0.1)

    thread = threading.Thread(target=work)
    with other:
        thread.start()
        thread.join()
        assert started.is_set()
    assert cpu(block.stop()).value == pytest.approx(0.1, rel=0.03, abs=0.005)


def test_children_that_nobody_waits_for_are_counted(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(
        "import os, sys, time\n"
        "while time.process_time() < 0.05: pass\n"
        "with open(sys.argv[1], 'a') as file: file.write(f'{time.process_time()}\\n')\n"
        "os._exit(0)\n"
    )
    record = as_program(
        """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel drops what they used
        with jobmeter.measure(keep=False) as block:
            began = time.thread_time()
            words = [sys.executable, "-S", f"{sys.argv[1]}/child.py", f"{sys.argv[1]}/used"]
            children = [subprocess.Popen(words) for _ in range(50)]
            while any(os.path.exists(f"/proc/{child.pid}") for child in children):
                time.sleep(0.01)
            with open(f"{sys.argv[1]}/used", "a") as file:
                file.write(str(time.thread_time() - began))
        print(json.dumps(block.run.record))
        """,
        str(tmp_path),
    )
    used = [float(line) for line in (tmp_path / "used").read_text().split()]
    assert 51 == len(used)
    assert_cpu_time(record, sum(used))
    assert "left_running" not in record["provenance"]
    assert record["measurements"]["block_processes"]["peak"] > 1


def test_children_that_are_waited_for_count_as_rusage_has_them() -> None:
    record, truth = as_program("""
        import resource
        def used():
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            return children.ru_utime + children.ru_stime + time.thread_time()
        with jobmeter.measure(keep=False) as block:
            before = used()
            for _ in range(5):
                subprocess.run([sys.executable, "-S", "-c", "import time\\nwhile time.process_time() < 0.1: pass"])
            after = used()
        print(json.dumps([block.run.record, after - before]))
    """)
    assert_cpu_time(record, truth)


def test_a_child_that_ran_before_the_block_is_not_the_blocks() -> None:
    value, peak = as_program("""
        code = "held = b'x' * (100 << 20)\\nimport time\\nwhile time.process_time() < 0.6: pass\\n"
        code += "print(1, flush=True)\\ninput()"
        child = subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdout.readline()
        with jobmeter.measure(keep=False) as block:
            time.sleep(0.2)
            child.communicate(b"\\n")
        print(json.dumps([block.run.usage.cpu_seconds.value, block.run.usage.memory_peak_bytes.value]))
    """)
    assert value < 0.2
    assert peak < 90 * MIB


def test_what_a_child_leaves_running_makes_the_figures_at_least() -> None:
    quality, left = as_program("""
        with jobmeter.measure(keep=False) as block:
            child = subprocess.Popen(["sleep", "60"])
        child.kill()
        print(json.dumps([block.run.usage.cpu_seconds.quality, block.run.record["provenance"]["left_running"]]))
    """)
    assert ("at least", 1) == (quality, left)


def test_without_perf_events_children_are_counted_as_far_as_known_and_said_to_be_at_least() -> None:
    code = """
        import jobmeter.session.block_clock as block_clock
        block_clock._try_event = lambda *threads: None  # as where the kernel forbids them
        def burn(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end: pass
        with jobmeter.measure(keep=False) as alone:
            burn(0.2)
        with jobmeter.measure(keep=False) as parent:
            subprocess.run([sys.executable, "-S", "-c", "import time\\nwhile time.process_time() < 0.2: pass"])
        with jobmeter.measure(keep=False) as outer:
            inner = jobmeter.measure(keep=False)
            def work():
                with inner:
                    burn(0.2)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        print(json.dumps([[run.usage.cpu_seconds.value, run.usage.cpu_seconds.quality]
                          for run in (alone.run, parent.run, inner.run, outer.run)]))
    """
    alone, parent, inner, outer = as_program(code)
    assert alone == [pytest.approx(0.2, rel=0.03, abs=0.005), "exact"]
    assert parent == [pytest.approx(0.21, rel=0.15), "at least"]
    assert inner == [pytest.approx(0.2, rel=0.03, abs=0.005), "exact"]
    assert outer[1] == "at least"


def test_the_peak_of_memory_is_that_of_the_block_and_not_of_the_program_before() -> None:
    before, during, after, growth = as_program("""
        def peak(size):
            with jobmeter.measure(keep=False) as block:
                held = b"x" * (size << 20)
                del held
            return block.run
        runs = [peak(300), peak(30), peak(1)]
        print(json.dumps([*(run.memory_peak_bytes for run in runs), runs[1].measured("block_mem_growth")["peak"]]))
    """)
    assert 300 * MIB < before < 340 * MIB
    assert 30 * MIB < during < 70 * MIB
    assert after < 45 * MIB
    assert growth == pytest.approx(30 * MIB, rel=0.1)


def test_a_block_inside_does_not_take_the_peak_of_the_block_around_it() -> None:
    outer, inner = as_program("""
        with jobmeter.measure(keep=False) as outer:
            held = b"x" * (200 << 20)
            del held
            with jobmeter.measure(keep=False) as inner:
                pass
        print(json.dumps([outer.run.memory_peak_bytes, inner.run.memory_peak_bytes]))
    """)
    assert outer > 200 * MIB
    assert inner < 60 * MIB


def test_memory_of_children_is_added_to_that_of_the_block() -> None:
    peak, minimum, mean = as_program("""
        code = "held = b'x' * (100 << 20)\\nimport time\\ntime.sleep(2.5)"
        with jobmeter.measure(keep=False) as block:
            children = [subprocess.Popen([sys.executable, "-S", "-c", code]) for _ in range(2)]
            for child in children:
                child.wait()
        usage = block.run.usage
        print(json.dumps([usage.memory_peak_bytes.value, usage.memory_min_bytes.value, usage.memory_mean_bytes.value]))
    """)
    assert 200 * MIB < peak < 260 * MIB
    assert minimum <= mean <= peak


def test_bytes_written_are_those_of_the_block(tmp_path: Path) -> None:
    (tmp_path / "before").write_bytes(b"x" * (3 << 20))
    with jobmeter.measure(keep=False) as block, open(tmp_path / "within", "wb") as file:
        file.write(b"x" * (5 << 20))
        file.flush()
        os.fsync(file.fileno())
    written = block.run.usage.write_bytes
    assert written is not None
    if Path(f"/proc/{os.getpid()}/io").exists() and written.value:  # a tmpfs writes to no disk
        assert written.value == pytest.approx(5 << 20, rel=0.05)


def test_an_exception_is_passed_on_and_the_run_has_failed() -> None:
    block = jobmeter.measure("breaks", keep=False)
    with pytest.raises(ZeroDivisionError), block:
        1 / 0  # noqa: B018
    assert ("failed", None, "ZeroDivisionError") == (
        block.run.status, block.run.exit_code, block.run.record["provenance"]["raised"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (SystemExit(0), "completed", 0),
        (SystemExit(3), "failed", 3),
        (SystemExit("no"), "failed", 1),
        (KeyboardInterrupt(), "cancelled", None),
        (asyncio.CancelledError(), "cancelled", None),
    ],
)
def test_how_a_block_ends_follows_from_the_exception(error: BaseException, status: str, code: int | None) -> None:
    block = jobmeter.measure(keep=False)
    with pytest.raises(type(error)), block:
        raise error
    assert (status, code) == (block.run.status, block.run.exit_code)


def test_a_block_in_asyncio_has_the_time_of_the_thread() -> None:
    async def work() -> tuple[jobmeter.Run, float]:
        began = time.thread_time()
        async with jobmeter.measure("task", keep=False) as block:
            for _ in range(5):
                burn(0.04)
                await asyncio.sleep(0.01)
        return block.run, time.thread_time() - began

    run, used = asyncio.run(work())
    assert cpu(run).value == pytest.approx(used, rel=0.03, abs=0.004)


def test_blocks_of_tasks_that_take_turns_cannot_be_separated_and_are_marked_as_shared() -> None:
    async def work(seconds: float) -> jobmeter.Run:
        async with jobmeter.measure(keep=False) as block:
            for _ in range(4):
                burn(seconds / 4)
                await asyncio.sleep(0)
        return block.run

    async def both() -> tuple[jobmeter.Run, jobmeter.Run]:
        return await asyncio.gather(work(0.1), work(0.2))

    for run in asyncio.run(both()):
        assert cpu(run).quality == "shared"
        assert memory(run).quality == "shared"
        assert 0.1 <= cpu(run).value <= 0.32


def test_measured_coroutines_that_take_turns_have_their_own_time(tmp_path: Path) -> None:
    @jobmeter.measured(store=str(tmp_path))
    async def work(seconds: float) -> float:
        used = 0.0
        for _ in range(4):
            used += burn(seconds / 4)
            await asyncio.sleep(0)
        return used

    async def both() -> tuple[float, float]:
        return await asyncio.gather(work(0.1), work(0.2))

    used = asyncio.run(both())
    runs = list(jobmeter.open_store(tmp_path).runs(name="*work"))
    assert sorted(used) == pytest.approx(sorted(cpu(run).value for run in runs), rel=0.03, abs=0.004)
    assert ["exact", "exact"] == [cpu(run).quality for run in runs]
    assert ["shared", "shared"] == [memory(run).quality for run in runs]


def test_a_measured_generator_has_its_own_time_and_not_that_of_its_reader(tmp_path: Path) -> None:
    used = []

    @jobmeter.measured("numbers", store=str(tmp_path))
    def numbers() -> Iterator[int]:
        for number in range(3):
            used.append(burn(0.03))
            yield number

    total = 0
    for number in numbers():
        burn(0.1)
        total += number
    run = jobmeter.open_store(tmp_path).run("numbers")
    assert total == 3
    assert cpu(run).value == pytest.approx(sum(used), rel=0.03, abs=0.004)


def test_a_measured_generator_gets_what_is_sent_and_thrown_and_may_be_closed(tmp_path: Path) -> None:
    @jobmeter.measured("echo", store=str(tmp_path))
    def echo() -> Iterator[Any]:
        answer = None
        while True:
            try:
                answer = yield answer
            except KeyError as error:
                answer = repr(error)

    generator: Any = echo()
    assert None is next(generator)
    assert 5 == generator.send(5)
    assert "KeyError('x')" == generator.throw(KeyError("x"))
    generator.close()
    assert "completed" == jobmeter.open_store(tmp_path).run("echo").status


def test_a_measured_async_generator_has_its_own_time(tmp_path: Path) -> None:
    used = []

    @jobmeter.measured("stream", store=str(tmp_path))
    async def stream() -> AsyncIterator[int]:
        for number in range(3):
            used.append(burn(0.03))
            await asyncio.sleep(0)
            yield number

    async def read() -> list[int]:
        numbers = []
        async for number in stream():
            burn(0.05)
            numbers.append(number)
        return numbers

    assert [0, 1, 2] == asyncio.run(read())
    assert cpu(jobmeter.open_store(tmp_path).run("stream")).value == pytest.approx(sum(used), rel=0.03, abs=0.004)


def test_a_measured_function_keeps_its_name_its_result_and_its_exception(tmp_path: Path) -> None:
    @jobmeter.measured(store=str(tmp_path), labels={"team": "a"}, memory="2g")
    def divide(a: float, b: float) -> float:
        """Divide."""
        return a / b

    assert (2.0, "divide", "Divide.") == (divide(4, 2), divide.__name__, divide.__doc__)
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)
    runs = list(jobmeter.open_store(tmp_path).runs())
    assert ["failed", "completed"] == [run.status for run in runs]
    assert {"team": "a"} == runs[0].labels
    assert {"memory_bytes": 2 << 30} == runs[0].record["requirement"]


def test_after_a_fork_the_child_measures_blocks_of_its_own(tmp_path: Path) -> None:
    printed = as_program(
        """
        store = sys.argv[1]
        def burn(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end: pass
        with jobmeter.measure("parent", store=store) as parent:
            parent_began = time.thread_time()
            burn(0.1)
            pid = os.fork()
            if pid == 0:
                with jobmeter.measure("child", store=store) as child:
                    began = time.thread_time()
                    burn(0.2)
                    child_burnt = time.thread_time() - began
                with open(f"{store}/burnt", "w") as file:
                    file.write(str(child_burnt))
                try:
                    parent.stop()
                except jobmeter.UsageError as error:
                    print(json.dumps(str(error)), flush=True)
                os._exit(0)
            used = os.wait4(pid, 0)[2]
            parent_used = time.thread_time() - parent_began  # with the fork, which takes its time
        with open(f"{store}/used", "w") as file:
            file.write(str(parent_used + used.ru_utime + used.ru_stime))
        """,
        str(tmp_path),
    )
    assert "forked process measures blocks of its own" in printed
    store = jobmeter.open_store(tmp_path)
    child_burnt = float((tmp_path / "burnt").read_text())
    assert cpu(store.run("child")).value == pytest.approx(child_burnt, rel=0.03, abs=0.004)
    assert_cpu_time(store.run("parent").record, float((tmp_path / "used").read_text()))
    assert 2 == len(list(Path(tmp_path, "journal").iterdir()))


def test_a_forked_child_that_leaves_the_block_of_its_parent_stores_nothing(tmp_path: Path) -> None:
    as_program(
        """
        with jobmeter.measure("parent", store=sys.argv[1]):
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
        if not pid:
            os._exit(0)
        print("null")
        """,
        str(tmp_path),
    )
    assert ["parent"] == [run.name for run in jobmeter.open_store(tmp_path).runs()]


def test_a_block_that_lasts_has_windows_and_is_running_until_it_ends(tmp_path: Path) -> None:
    windows: list[jobmeter.Window] = []
    with jobmeter.measure("long", store=tmp_path, interval=0.05, window=0.1, on_window=windows.append) as block:
        held = b"x" * (50 << 20)
        wait_for(lambda: len(windows) >= 2, "two windows")
        status = jobmeter.open_store(tmp_path).run("long").status
        so_far = block.so_far()
        del held
    assert ("running", "running", "completed") == (status, so_far.status, block.run.status)
    assert cpu(so_far).value <= cpu(block.run).value
    series = block.run.series(["block_memory"], peak=True)
    assert len(series["seconds"]) == len(series["block_memory"]) >= 2
    assert max(series["block_memory"]) > 50 * MIB


def test_a_program_that_is_killed_in_a_block_leaves_a_run_that_is_lost(tmp_path: Path) -> None:
    code = (
        "import jobmeter, sys, time\n"
        "with jobmeter.measure('long', store=sys.argv[1]):\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    wait_for(lambda: len(jobmeter.open_store(tmp_path)) == 1, "the run")
    assert "running" == jobmeter.open_store(tmp_path).run().status
    process.kill()
    process.communicate()
    assert "lost" == jobmeter.open_store(tmp_path).run().status


def test_many_blocks_of_a_process_share_one_file(tmp_path: Path) -> None:
    for number in range(30):
        with jobmeter.measure(f"block {number}", store=tmp_path, labels={"number": str(number)}):
            pass
    (path,) = Path(tmp_path, "journal").iterdir()
    store = jobmeter.open_store(tmp_path)
    assert 30 == len(store)
    (run,) = store.runs(labels={"number": "7"})
    assert "block 7" == run.name
    assert run.record == read_journal(str(path), RunLocation(run.id)).record


def test_blocks_leave_no_descriptor_open() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    with jobmeter.measure(keep=False, measurements=["proc_rss_total"]):
        pass
    before = descriptors()
    for _ in range(5):
        with jobmeter.measure(keep=False), jobmeter.measure(keep=False, measurements=["proc_rss_total"]):
            pass
    wait_for(lambda: descriptors() <= before, "that everything is closed")  # a thread of another test may read


def test_further_measurements_are_measured_beside_those_of_the_block() -> None:
    with jobmeter.measure(keep=False, measurements=["proc_rss_total"], interval=0.02) as block:
        wait_for(lambda: block.so_far().record["provenance"]["samples"] >= 3, "samples")
    assert block.run.measured("proc_rss_total")["peak"] > 5 * MIB
    assert "block_cpu_seconds" == cpu(block.run).source


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measurements": ["proc_rss_totl"]}, "there is no .proc_rss_totl.. Did you mean .proc_rss_total"),
        ({"measurements": ["rusage_maxrss"]}, "rusage_maxrss cannot be measured here"),
        ({"memory": "2 elephants"}, "2 elephants"),
        ({"memory": -1}, "'-1' is not an amount of memory"),
        ({"cpus": "many"}, "cpus: 'many' is not a number above 0"),
        ({"runtime": "later"}, "later"),
        ({"interval": -1}, "interval"),
    ],
)
def test_bad_options_are_one_clear_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as error, jobmeter.measure(keep=False, **options):
        raise AssertionError("it must not run")
    assert "\n" not in str(error.value)


def test_measured_refuses_bad_options_where_it_stands() -> None:
    with pytest.raises(UsageError, match="2 elephants"):
        jobmeter.measured(memory="2 elephants")(burn)
    with pytest.raises(TypeError, match="no option 'memry'"):
        jobmeter.measured(memry="2g")(burn)


def test_a_store_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file") as error, jobmeter.measure(store=tmp_path / "file"):
        raise AssertionError("it must not run")
    assert "\n" not in str(error.value)


def test_a_block_is_started_and_stopped_once() -> None:
    block = jobmeter.measure(keep=False)
    with pytest.raises(UsageError, match="was not started"):
        block.stop()
    block.start()
    with pytest.raises(UsageError, match="started already"):
        block.start()
    block.stop()
    with pytest.raises(UsageError, match="stopped already"):
        block.stop()


def test_signals_do_not_disturb_a_block() -> None:
    before = signal.getsignal(signal.SIGCHLD)
    with jobmeter.measure(keep=False):
        pass
    assert before == signal.getsignal(signal.SIGCHLD)

"""A network namespace with real traffic, read while its process lives and after."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from jobmeter.errors import NoData
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.netns import NetworkNamespace
from tests.network import wired
from tests.parts import need_root


@contextlib.contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a network namespace of its own."""
    need_root("to make a network namespace")
    process = subprocess.Popen(["unshare", "--net", "sleep", "60"])
    try:
        while os.readlink(f"/proc/{process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()


def test_what_came_in_is_counted_also_after_the_last_process() -> None:
    with sleeper() as process, wired(process.pid) as wire:
        namespace = NetworkNamespace(THIS_MACHINE, process.pid)
        wire.send(300)
        alive = namespace.traffic()
        wire.send(200)
        process.kill()
        process.wait()
        with pytest.raises(OSError, match="No such file"):
            namespace.traffic()
        after = namespace.last_traffic()
        namespace.close()
    assert (["eth0"], ["eth0"]) == (list(alive), list(after))
    assert 300_000 <= alive["eth0"][0] < 310_000
    assert 500_000 <= after["eth0"][0] < 510_000
    assert os.readlink("/proc/self/ns/net") == os.readlink("/proc/thread-self/ns/net")


def test_a_process_in_the_same_network_has_none_of_its_own() -> None:
    with pytest.raises(NoData, match="it is in the network namespace of jobmeter"):
        NetworkNamespace(THIS_MACHINE, os.getpid())


def test_a_process_that_is_gone_is_no_data() -> None:
    done = subprocess.Popen(["true"])
    done.wait()
    with pytest.raises(NoData, match="cannot be read"):
        NetworkNamespace(THIS_MACHINE, done.pid)

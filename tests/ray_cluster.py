"""A real Ray cluster of several nodes on this machine, in a process of its own: `RayCluster`, `shared_cluster`.

Ray's own `Cluster` makes its caller the leader of a process group and takes over its signals. So it lives in another
process (`python -m tests.ray_cluster`), which gets its orders line by line, and ends all that it started when its
stdin does: also when the tests are killed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.parts import need_module
from tests.waiting import LONG

SOURCE = str(Path(__file__).parents[1] / "src")
_SMALLEST_STORE = 80 << 20
"""Bytes. Ray refuses an object store of less than 75 MiB."""

RAY_ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    # The nodes share one machine, which other tests use too: none of them shall kill a task to save memory.
    "RAY_memory_monitor_refresh_ms": "0",
}
"""What every process that has to do with a cluster of the tests needs."""


class RayCluster:
    """A head without CPUs, unless requested otherwise, and nodes that are added. `close` it, whatever happens."""

    def __init__(self, *, dashboard: bool = False, environment: Mapping[str, str] | None = None, **head: Any) -> None:
        """`head` are the arguments of Ray's `add_node` for the head."""
        need_module("ray")
        self.folder = tempfile.mkdtemp(prefix="jmr-", dir="/tmp")  # sockets below it must have short paths
        self._log = open(f"{self.folder}/log", "wb")  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.ray_cluster"],
            cwd=Path(__file__).parents[1],
            env={**self.environment(), **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        try:
            self.head = self.add_node(include_dashboard=dashboard, **{"num_cpus": 0, **head})
            self.address: str = self._request("address")["address"]
            """HOST:PORT of the head."""
        except BaseException:
            self.close()
            raise

    def environment(self) -> dict[str, str]:
        """For programs that use the cluster. `auto` is this cluster for them."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("JOBMETER_", "RAY_"))}
        return {**kept, **RAY_ENVIRONMENT, "RAY_TMPDIR": self.folder, "PYTHONPATH": SOURCE}

    def add_node(self, environment: Mapping[str, str] | None = None, **arguments: Any) -> str:
        """Start a node with these arguments of Ray's `add_node`; its id. `environment` is added to that of its jobs."""
        settings = {"object_store_memory": _SMALLEST_STORE, "memory": 4 << 30, **arguments}
        return str(self._request("add", environment=dict(environment or {}), arguments=settings)["node"])

    def kill_node(self, node: str) -> None:
        """End a node as a power cut does: all its processes at once."""
        self._request("remove", node=node, graceful=False)

    def remove_node(self, node: str) -> None:
        """Let a node leave."""
        self._request("remove", node=node, graceful=True)

    def raylet(self, node: str) -> int:
        """The pid of the process that is the node."""
        return int(self._request("raylet", node=node)["pid"])

    def close(self) -> None:
        """End every process of the cluster."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=LONG)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # agents of nodes that were killed live on
        self._process.stdout.close()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _request(self, order: str, **fields: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"order": order, **fields}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the cluster ended: {Path(self._log.name).read_text(errors='replace')[-2000:]}"
        answer: dict[str, Any] = json.loads(line)
        assert "error" not in answer, answer
        return answer


@functools.cache
def shared_cluster() -> RayCluster:
    """Two nodes of two CPUs, for tests that do them no harm, until the end of this process."""
    cluster = RayCluster()
    atexit.register(cluster.close)
    os.environ.update(RAY_ENVIRONMENT)  # for the engine, where a test uses it in this process
    for _ in range(2):
        cluster.add_node(num_cpus=2)
    return cluster


class _Host:
    """The process that the nodes belong to."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster()
        self._nodes: dict[str, Any] = {}

    def answer(self, order: str, **fields: Any) -> dict[str, Any]:
        if order == "address":
            return {"address": self._cluster.address}
        if order == "add":
            return {"node": self._add(**fields)}
        if order == "raylet":
            (info,) = self._nodes[fields["node"]].all_processes["raylet"]
            return {"pid": info.process.pid}
        assert order == "remove"
        self._cluster.remove_node(self._nodes.pop(fields["node"]), allow_graceful=fields["graceful"])
        return {}

    def _add(self, environment: dict[str, str], arguments: dict[str, Any]) -> str:
        before = dict(os.environ)
        os.environ.update(environment)
        try:
            node = self._cluster.add_node(**arguments)
        finally:
            for name in environment:
                os.environ.pop(name)
            os.environ.update(before)
        self._nodes[node.node_id] = node
        return str(node.node_id)

    def close(self) -> None:
        for node in list(self._nodes.values()):
            self._cluster.remove_node(node, allow_graceful=False)


def main() -> None:
    """Do what each line of stdin says, and answer it with a line."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what Ray prints is no answer
    host = _Host()
    try:
        for line in sys.stdin:
            try:
                answer = host.answer(**json.loads(line))
            except Exception as error:  # noqa: BLE001 - whoever sent the order shall see it
                answer = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(answer).encode() + b"\n")
    finally:
        host.close()


if __name__ == "__main__":
    main()

"""The driver of Ray, in a separate process: handles the runner's requests, and passes on what the nodes report.

Messages in both directions are pickles, through one socket. The driver ends when the runner does; then Ray ends the
tasks that the driver had started.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path[0] = __file__.rsplit(os.sep, 4)[0]

from jobmeter.engines.ray import cluster
from jobmeter.engines.ray.left_jobs import end_left
from jobmeter.engines.ray.mailbox import Mailbox
from jobmeter.engines.ray.node_tasks import run_order
from jobmeter.engines.ray.protocol import CUSTOM, NAMESPACE, Order, mailbox_name
from jobmeter.errors import JobmeterError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_LOOK = 2.0
"""Seconds between two readings of the list of nodes."""
_UNAVAILABLE = 10.0
"""Seconds for which the mailbox may be out of reach."""
_DRIVER_ENDS = 60.0
"""Seconds to wait until Ray notices that a driver is gone."""


class Driver:
    """Answers each call of the runner with `("answer", …)` or `("refused", why)`; all else it sends is an event."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._out: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._remote: Any = None
        self._mailbox: Any = None
        self._refs: dict[str, Any] = {}
        # A separate thread, as sending blocks if the runner is stopped: a stopped runner must not look like a dead one.
        threading.Thread(target=self._send_all, daemon=True).start()

    def serve(self) -> None:
        """Handle the runner's requests until `close`. Raises EOFError or OSError if the runner is gone."""
        calls: dict[str, Callable[..., Any]] = {
            "connect": cluster.connect,
            "check": cluster.check_nodes,
            "nodes": cluster.nodes,
            "open": self.open,
            "end_left": self.end_left,
        }
        orders: dict[str, Callable[..., None]] = {"submit": self.submit, "cancel": self.cancel, "unqueue": self.unqueue}
        while True:
            kind, *arguments = self._connection.recv()
            if kind == "close":
                return
            if kind in orders:
                orders[kind](*arguments)
                continue
            try:
                self._out.put(("answer", calls[kind](*arguments)))
            except JobmeterError as error:
                self._out.put(("refused", str(error)))
            except Exception as error:  # noqa: BLE001 - the runner reports it in one line
                self._out.put(("refused", _reason(error)))

    def open(self, key: str) -> dict[str, str]:
        """Get ready to run tasks. Returns the ids by which a later driver can check whether this one still runs."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        context = ray.get_runtime_context()
        self._mailbox = (
            ray.remote(Mailbox)
            .options(
                name=mailbox_name(key),
                namespace=NAMESPACE,
                num_cpus=0,
                max_concurrency=100_000,
                scheduling_strategy=NodeAffinitySchedulingStrategy(context.get_node_id(), soft=False),
            )
            .remote()
        )
        self._remote = ray.remote(num_cpus=1, max_retries=0)(run_order)
        for run in (self._take_reports, self._watch_nodes):
            threading.Thread(target=self._guarded, args=(run,), daemon=True).start()
        return {"job": context.get_job_id(), "session": _session()}

    def submit(self, order: Order, need: Mapping[str, float], name: str) -> None:
        try:
            options: dict[str, Any] = {"num_cpus": need.get("cpus", 0), "name": name}
            if "memory_bytes" in need:
                options["memory"] = int(need["memory_bytes"])
            if need.get("gpus"):
                options["num_gpus"] = need["gpus"]
            custom = {key.removeprefix(CUSTOM): amount for key, amount in need.items() if key.startswith(CUSTOM)}
            if custom:
                options["resources"] = custom
            self._refs[order.id] = ref = self._remote.options(**options).remote(order)
            ref.future().add_done_callback(lambda future: self._finished(order.id, future))
        except Exception as error:  # noqa: BLE001 - a failure of one task must not affect the others
            self._out.put(("refused_task", order.id, cluster.in_short(error)))

    def cancel(self, task: str | None, at_once: bool) -> None:
        if self._mailbox is not None:
            self._mailbox.cancel.remote(task, at_once)

    def unqueue(self, task: str) -> None:
        """Remove a task that still waits from Ray's queue."""
        import ray

        if (ref := self._refs.get(task)) is not None:
            with contextlib.suppress(Exception):
                ray.cancel(ref, force=False, recursive=False)

    def end_left(self, engines: Sequence[Mapping[str, str]]) -> tuple[int, list[str]]:
        """End what earlier drivers left on any node. Returns how many jobs still ran, and warnings."""
        import ray

        self._await_ends({each["job"] for each in engines if each["session"] == _session()})
        remote = ray.remote(num_cpus=0, max_retries=0)(end_left)
        ended, failures = cluster.on_every_node(remote, [each["key"] for each in engines])
        warnings = [
            f"what a killed runner left on node {node.short()} could not be ended: {why}"
            for node, why in failures.items()
        ]
        return sum(ended.values()), warnings

    def _await_ends(self, jobs: set[str]) -> None:
        from ray._private.state import jobs as job_table

        until = time.monotonic() + _DRIVER_ENDS
        while time.monotonic() < until:
            if not any(job["JobID"] in jobs and not job["IsDead"] for job in job_table()):
                return
            time.sleep(0.1)

    # What the nodes report.

    def _finished(self, task: str, future: Any) -> None:
        self._refs.pop(task, None)
        error = future.exception()
        if error is None:
            first, reports = future.result()
            self._out.put(("reports", task, first, reports))
        else:
            self._out.put(("lost", task, type(error).__name__, cluster.in_short(error)))

    def _take_reports(self) -> None:
        import ray
        from ray.exceptions import ActorUnavailableError

        last = time.monotonic()
        while True:
            try:
                for task, first, reports in ray.get(self._mailbox.take.remote()):
                    self._out.put(("reports", task, first, reports))
                last = time.monotonic()
            except ActorUnavailableError:
                if time.monotonic() - last > _UNAVAILABLE:
                    raise
                time.sleep(0.2)

    def _watch_nodes(self) -> None:
        last_nodes = None
        while True:
            now = cluster.nodes()
            if now != last_nodes:
                self._out.put(("nodes", now))
                last_nodes = now
            time.sleep(_LOOK)

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:  # noqa: BLE001 - an exception in this thread would go unnoticed
            self._out.put(("broke", f"its head, or the node of this runner, does not answer ({type(error).__name__})"))

    def _send_all(self) -> None:
        """Send until that fails, then exit: otherwise a runner that still lives would wait for an answer for ever."""
        try:
            while True:
                self._connection.send(self._out.get())
        except Exception as error:  # noqa: BLE001 - the runner reports it in one line
            sys.stderr.write(f"{_reason(error)}\n")
        finally:
            os._exit(1)


def _reason(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    return f"{type(error).__name__}: {cluster.in_short(error)}"


def _session() -> str:
    import ray

    return str(ray._private.worker._global_node.session_name)


def main(descriptor: int) -> None:
    from multiprocessing.connection import Connection

    os.chdir("/")  # Ray's workers look for modules in the working directory of the driver
    driver = Driver(Connection(descriptor))
    with contextlib.suppress(EOFError, OSError):
        driver.serve()
    # Exit at once. Ray then ends the tasks that still run; if all went well, there are none.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))

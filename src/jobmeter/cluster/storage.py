"""Stores the samples of a cluster: `<store>/cluster/<id>.jsonl`, append-only.

Line 1 is the header, with the process that writes. `{"node": {…}}`: a node joined or changed.
`{"columns": {"n ID": […]}}`: the keys that samples of a node have from here on. `{"requests": {…}}`: what the tasks of
each name request. `{"at": …}`: a sample, with its values in the order of the columns. The last line is `{"ended": …}`;
without it, the monitor was killed, and all that it wrote counts.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Mapping
from typing import Any

from jobmeter.analyse.cluster.model import ClusterSample, History, Node, Waiting
from jobmeter.byte_text import json_text
from jobmeter.errors import StoreError, UsageError
from jobmeter.journal.lines import open_journal, parse_line, read_lines
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import read_stat
from jobmeter.record.types import LARGEST, MOMENT
from jobmeter.store_access import create, make_store_directory
from jobmeter.suggestion import suggest

SCHEMA = "jobmeter.cluster-samples/1"
FOLDER = "cluster"
SUFFIX = ".jsonl"
_MOST = LARGEST / 1e6
"""The largest amount: the sum of a million of them is within what the schema of the report allows."""


class SampleFile:
    """Writes the file while the cluster is watched. If the disk is full, samples are lost; the monitor goes on."""

    def __init__(self, store: str, about: Mapping[str, Any]) -> None:
        """Raises StoreError if the file cannot be created."""
        self.path = path_of(store, str(about["id"]))
        self.failed: str | None = None
        self._nodes: dict[str, Node] = {}
        self._requests: dict[str, dict[str, float]] = {}
        self._columns: dict[str, list[str]] = {}
        self._owed = _encoded({"schema": SCHEMA, **about, "writer": _this_writer()})  # comes before the next lines
        try:
            access = make_store_directory(store, FOLDER)
            self._descriptor = create(self.path, access, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}") from None
        self._write()

    def add(self, history: History, sample: ClusterSample) -> None:
        """Write a sample, after the lines that are needed to read it."""
        nodes = {name: node for name, node in history.nodes.items() if self._nodes.get(name) != node}
        lines: list[Any] = [{"node": _without_none(node._asdict())} for node in nodes.values()]
        requests = {name: dict(request) for name, request in history.requests.items()}
        if requests != self._requests:
            lines.append({"requests": requests})
        columns = {}
        for group, values in (*_named("n", sample.nodes), *_named("t", sample.tasks), ("c", sample.cluster)):
            if self._columns.get(group) != list(values):
                columns[group] = list(values)
        if columns:
            lines.append({"columns": columns})
        entry: dict[str, Any] = {"at": round(sample.seconds, 3), "span": round(sample.span, 3)}
        for group, values in (*_named("n", sample.nodes), *_named("t", sample.tasks), ("c", sample.cluster)):
            entry[group] = [_short(value) for value in values.values()]
        if sample.waiting:
            entry["waiting"] = [[dict(each.request), each.tasks] for each in sample.waiting]
        if self._write(*lines, entry):  # else the next sample needs these lines, too
            self._nodes.update(nodes)
            self._requests = requests
            self._columns.update(columns)

    def end(self, ended: Mapping[str, Any]) -> None:
        self._write({"ended": ended})
        os.close(self._descriptor)

    def _write(self, *lines: Any) -> bool:
        """Write all of the lines, after what is owed, or none."""
        data, written = self._owed + _encoded(*lines), 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            self.failed = self.failed or f"{self.path}: {error.strerror}"
            if written:
                self._remove_last(written)
            return False
        self._owed = b""
        return True

    def _remove_last(self, count: int) -> None:
        """Remove the beginning of lines of which the rest could not be written."""
        try:
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - count)
        except OSError:
            self._owed = b"\n" + self._owed  # ends the line that was cut, which readers skip


def _encoded(*lines: Any) -> bytes:
    return "".join(json_text(line, separators=(",", ":")) + "\n" for line in lines).encode()


def _this_writer() -> dict[str, Any]:
    """This process, so that others can check whether it may write more."""
    writer: dict[str, Any] = {"pid": os.getpid(), "host": os.uname().nodename}
    with contextlib.suppress(OSError, ValueError):  # no /proc here
        writer["start"] = read_stat(THIS_MACHINE, os.getpid()).start
    return writer


def _named(kind: str, group: Mapping[str, Mapping[str, float]]) -> list[tuple[str, Mapping[str, float]]]:
    return [(f"{kind} {name}", values) for name, values in group.items()]


def _short(value: float) -> float | int:
    return int(value) if value == int(value) else float(f"{value:.5g}")


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def path_of(store: str, cluster_id: str) -> str:
    return f"{store}/{FOLDER}/{cluster_id}{SUFFIX}"


def stored_ids(store: str) -> list[str]:
    """The ids of all monitors in the store, the newest last."""
    try:
        with os.scandir(f"{store}/{FOLDER}") as entries:
            times_and_names = [(entry.stat().st_mtime, entry.name) for entry in entries if entry.name.endswith(SUFFIX)]
    except OSError:
        return []
    return [name.removesuffix(SUFFIX) for _, name in sorted(times_and_names)]


def resolve_id(store: str, text: str) -> str:
    """The id that `text` names: an id, its unique beginning, or `last`. Raises UsageError if there is none."""
    ids = stored_ids(store)
    if not ids:
        raise UsageError(f"no cluster was watched with this store: {store}")
    if text == "last":
        return ids[-1]
    chosen = [each for each in ids if each.startswith(text)]
    if len(chosen) != 1 and text not in ids:
        what = "several begin like that" if chosen else "there is none of this id"
        raise UsageError(f"{text!r}: {what}. {suggest(text, ids, f'The newest is {ids[-1]}.')}")
    return text if text in ids else chosen[0]


def read_samples(path: str) -> tuple[dict[str, Any], History]:
    """The header, with what the last line says, and all samples. Raises StoreError if it is not a file of samples."""
    history, columns = History(), dict[str, list[str]]()
    about: dict[str, Any] = {}
    with open_journal(path) as file:
        for line in read_lines(file):
            entry = parse_line(line)
            if not about:
                if not isinstance(entry, dict) or entry.get("schema") != SCHEMA:
                    raise StoreError(f"{path}: line 1 is not {SCHEMA}. Was it written by another version of jobmeter?")
                about = _header(path, entry)
            elif isinstance(entry, dict):
                try:
                    _take(entry, about, history, columns)
                except (AttributeError, KeyError, TypeError, ValueError):
                    continue  # a line that is not ours
    if not about:
        raise StoreError(f"{path}: it is empty")
    return about, history


def _header(path: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    try:
        words = {name: str(entry[name]) for name in ("id", "engine", "address")}
        return {**words, "started": _moment(entry["started"]), "interval_seconds": _amount(entry["interval_seconds"])}
    except (KeyError, TypeError, ValueError):
        raise StoreError(f"{path}: line 1 lacks what the header of samples has") from None


def _take(entry: dict[str, Any], about: dict[str, Any], history: History, columns: dict[str, list[str]]) -> None:
    if "node" in entry:
        node = _node(**entry["node"])
        history.nodes[node.id] = node
    elif "requests" in entry:
        history.requests = {name: _numbers(request) for name, request in entry["requests"].items()}
    elif "columns" in entry:
        columns.update({name: [str(key) for key in keys] for name, keys in entry["columns"].items()})
    elif "ended" in entry:
        about.update(_about(entry["ended"]))
    elif "at" in entry:
        groups: dict[str, dict[str, dict[str, float]]] = {"n": {}, "t": {}}
        cluster: dict[str, float] = {}
        for name, values in entry.items():
            if name == "c":
                cluster = _numbers(dict(zip(columns["c"], values)))
            elif name[:2] in ("n ", "t "):
                groups[name[0]][name[2:]] = _numbers(dict(zip(columns[name], values)))
        waiting = tuple(Waiting(_numbers(request), int(_amount(tasks))) for request, tasks in entry.get("waiting", ()))
        at, span = _amount(entry["at"]), _amount(entry["span"])
        if span < 0 or at < history.seconds:
            raise ValueError("samples come one after the other")
        history.add(ClusterSample(at, span, groups["n"], groups["t"], waiting, cluster))


def _node(*, joined: float, left: float | None = None, lost: str | None = None, **words: str) -> Node:
    gone = None if left is None else _amount(left)
    return Node(
        str(words["id"]),
        str(words["name"]),
        str(words["host"]),
        str(words["scope"]),
        _amount(joined),
        gone,
        None if lost is None else str(lost),
    )


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {key: _amount(value) for key, value in values.items()}


def _amount(value: Any) -> float:
    """The value as an amount. Raises ValueError if it is below 0, NaN or too large to be added up, as JSON may have."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 <= number <= _MOST:
        raise ValueError("no amount")
    return number


def _moment(value: Any) -> str:
    """The value as a time. Raises ValueError if it is none."""
    if not isinstance(value, str) or re.search(MOMENT, value) is None:
        raise ValueError("no time")
    return value


def _about(fields: Mapping[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = {}
    if "ended" in fields:
        about["ended"] = _moment(fields["ended"])
    if "monitor_cpu_seconds" in fields:
        about["monitor_cpu_seconds"] = _amount(fields["monitor_cpu_seconds"])
    about["notes"] = [str(note) for note in fields.get("notes", ())]
    return about

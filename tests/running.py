"""Runs `jobmeter` as people do, from a shell, as root or as an ordinary user."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.metadata
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.parts import need_root
from tests.records import parse_record
from tests.waiting import LONG

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOBODY = 65534 if os.getuid() == 0 else os.getuid()
"""An ordinary user: where root runs the tests, one that they become, else the one who runs them."""
USERS = pytest.mark.parametrize("user", [pytest.param(0, id="root"), pytest.param(NOBODY, id="ordinary user")])
WORKPLACES: list[str] = []
"""The directories that `workplace` made."""


class Metered(NamedTuple):
    """One run of `jobmeter run`, and what there is to see of it afterwards."""

    exit_code: int
    record: dict[str, Any]
    stdout: str
    stderr: str
    truth: list[dict[str, float]]

    def value(self, name: str) -> float:
        return float(self.record["usage"][name]["value"])

    def quality(self, name: str) -> str:
        return str(self.record["usage"][name]["quality"])

    def is_exact_cpu(self) -> bool:
        """Whether CPU time is called exact, or cannot be for what the hypervisor took away meanwhile."""
        return is_exact_cpu(self.record)

    def true(self, name: str) -> float:
        """What the load said of itself: CPU is the sum over its processes, of the rest the largest."""
        values = [line[name] for line in self.truth if name in line]
        return sum(values) if name == "cpu" else max(values)


def is_exact_cpu(record: Mapping[str, Any]) -> bool:
    """See `Metered.is_exact_cpu`."""
    cpu = record["usage"]["cpu_seconds"]
    return bool(cpu["quality"] == "exact" or stolen_seconds(record) > 0.02 * cpu["value"])


def stolen_seconds(record: Mapping[str, Any]) -> float:
    """What the hypervisor took away while the job ran: CPU time that is not exact may lack it."""
    measured = record["measurements"]
    return float(max(measured.get(f"{source}_stolen_seconds", {}).get("total", 0.0) for source in ("perf", "block")))


def assert_cpu_time(record: Mapping[str, Any], truth: float) -> None:
    """The CPU time is right within 3 %, or at least that much without what the hypervisor took away."""
    assert is_exact_cpu(record)
    cpu = record["usage"]["cpu_seconds"]
    lacking = stolen_seconds(record) if cpu["quality"] == "at least" else 0.0
    assert 0.97 * truth - lacking <= cpu["value"] <= 1.03 * truth


@functools.cache
def readable_copy() -> str:
    """A copy of the package and the loads that every user may read."""
    folder = tempfile.mkdtemp(prefix="jobmeter-tests-")
    atexit.register(_remove, folder, os.getpid())
    os.chmod(folder, 0o755)
    for name in ("src", "benchmarks"):
        shutil.copytree(f"{ROOT}/{name}", f"{folder}/{name}", ignore=shutil.ignore_patterns("__pycache__"))
    # As an installed package has it: else every run would compile all that it imports.
    subprocess.run([interpreter(), "-m", "compileall", "-q", f"{folder}/src"], check=True)
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    return folder


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not a process that a test forked
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def readable_packages() -> str:
    """Where every user may read the packages that jobmeter needs: this Python's own, or a copy.

    A copy if the project is in a directory that others may not enter, as the home of root.
    """
    site = sysconfig.get_paths()["platlib"]
    if all(os.stat(place).st_mode & stat.S_IXOTH for place in (site, *map(str, Path(site).parents))):
        return site
    names = {file.parts[0] for package in _dependencies("jobmeter") for file in package.files or ()}
    paths = (f"{site}/{name}" for name in names if name not in ("..", "__pycache__"))
    return copy_packages("packages", [path for path in paths if os.path.exists(path)])


def _dependencies(name: str) -> Iterator[importlib.metadata.Distribution]:
    """The packages that this one needs, and those that they need. Extras are left out."""
    for requirement in importlib.metadata.requires(name) or ():
        needed = re.match(r"[\w.-]+", requirement)
        if needed and "extra ==" not in requirement:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # for another system or Python
                yield importlib.metadata.distribution(needed[0])
                yield from _dependencies(needed[0])


def copy_packages(folder_name: str, paths: Sequence[str], *leave_out: str) -> str:
    """A new folder with copies of these packages, that every user may read, without files of these patterns."""
    folder = f"{readable_copy()}/{folder_name}"
    os.makedirs(folder)
    for path in paths:
        target = f"{folder}/{os.path.basename(path)}"
        if os.path.isdir(path):
            shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__", *leave_out))
        else:
            shutil.copy(path, target)
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    return folder


def interpreter() -> str:
    """A Python that every user may run."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JOBMETER_", "XDG_"))}
    return {**kept, "PYTHONPATH": f"{readable_copy()}/src"}


def environment_with_packages() -> dict[str, str]:
    """The same, for commands that read the store or a spec: they need packages."""
    return {**environment(), "PYTHONPATH": f"{readable_copy()}/src:{readable_packages()}"}


def command_line(arguments: Sequence[str], user: int | None = None) -> list[str]:
    """The words of `jobmeter ARGUMENTS`, run by `user`; None is whoever runs the tests."""
    return [*become(user), interpreter(), "-m", "jobmeter", *arguments]


def become(user: int | None) -> list[str]:
    """The words before a command that is to be run by `user`."""
    if user is None or user == os.getuid():
        return []
    need_root("to be what this test is about" if user == 0 else "to become another user")
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


def workplace() -> str:
    """A new directory that every user may write to."""
    folder = tempfile.mkdtemp(prefix="job-", dir=readable_copy())
    os.chmod(folder, 0o777)
    WORKPLACES.append(folder)
    return folder


def jobmeter(*arguments: str, user: int | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """`jobmeter ARGUMENTS`, its output captured."""
    folder = workplace()
    settings: dict[str, Any] = {
        "env": {**environment(), "HOME": folder},
        "cwd": folder,
        "capture_output": True,
        "text": True,
        "errors": "surrogateescape",
        "timeout": LONG,
        **options,
    }
    done = subprocess.run(command_line(arguments, user), check=False, **settings)
    if done.returncode == 0 and arguments[0] == "show" and "--json" in arguments:
        parse_record(done.stdout)
    return done


def meter(*command: str, options: Sequence[str] = (), user: int | None = None, **more: Any) -> Metered:
    """`jobmeter run OPTIONS -- COMMAND` and its record."""
    folder = workplace()
    report = f"{folder}/record.json"
    result = jobmeter(
        "run", "--report", report, "--store", f"{folder}/store", *options, "--",
        *(word.replace("@", folder) for word in command), user=user, **more,
    )  # fmt: skip
    record = {}
    if os.path.exists(report):
        with open(report, "rb") as file:
            record = parse_record(file.read())
    truth = []
    if os.path.exists(f"{folder}/truth"):
        with open(f"{folder}/truth", encoding="utf-8") as file:
            truth = [json.loads(line) for line in file]
    return Metered(result.returncode, record, result.stdout, result.stderr, truth)


def meter_load(name: str, *, options: Sequence[str] = (), user: int | None = None, **more: Any) -> Metered:
    """A load of benchmarks/loads.py, with what it knows of itself in `truth`."""
    words = [interpreter(), f"{readable_copy()}/benchmarks/loads.py", name, "@"]
    done = meter(*words, options=options, user=user, **more)
    assert done.exit_code == 0, done.stderr
    return done

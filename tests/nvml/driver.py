"""A stand-in for NVIDIA's driver at its lowest edge: the library that the real client loads."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.parts import missing
from tests.records import parse_record
from tests.running import environment
from tests.waiting import LONG

SOURCE = Path(__file__).with_name("stub.c")
JOB = """
import os, sys, time
path = os.environ["NVML_STUB"]
text = open(path).read().replace("ME", str(os.getpid()))
open(path + ".new", "w").write(text)
os.rename(path + ".new", path)
def asked():
    return os.path.getsize(path + ".asked") if os.path.exists(path + ".asked") else 0
def until_sampled(times=12):
    before, deadline = asked(), time.monotonic() + 100
    while asked() < before + times and time.monotonic() < deadline: time.sleep(0.02)
"""
"""A job that is on the GPUs on which the driver says ME is, and can wait until the driver was queried for that."""


@functools.cache
def library(*flags: str) -> str:
    """The folder with the library, built by the compiler of this machine."""
    if shutil.which("gcc") is None:
        missing("needs gcc, for the stub of libnvidia-ml.so.1")
    folder = tempfile.mkdtemp(prefix="nvml-")
    os.chmod(folder, 0o755)
    target = f"{folder}/libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", *flags, "-o", target, str(SOURCE)], check=True)
    return folder


class StubDriver:
    """A driver that reports what the test sets, also while a job runs."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self._folder = folder
        self._says = folder / "driver"
        self._flags = flags
        self.say({"gpus": 0})

    def say(self, lines: dict[str, Any]) -> None:
        new = self._folder / "driver.new"
        new.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        new.rename(self._says)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **environment(),
            "LD_LIBRARY_PATH": library(*self._flags),
            "NVML_STUB": str(self._says),
            "HOME": str(self._folder),
            "JOBMETER_STORE": str(self._folder / "store"),
        }

    def jobmeter(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        # The interpreter of the tests: it has the client of the library.
        command = [sys.executable, "-m", "jobmeter", *arguments]
        settings: dict[str, Any] = {"capture_output": True, "text": True, "timeout": LONG, "cwd": self._folder}
        return subprocess.run(command, env={**self.environment, **more}, check=False, **settings)

    def run(self, job: str, *options: str, **more: str) -> Any:
        """The record of a job in Python."""
        report = self._folder / "record.json"
        done = self.jobmeter("run", "--report", str(report), *options, "--", sys.executable, "-c", JOB + job, **more)
        assert done.returncode == 0, done.stderr
        return parse_record(report.read_bytes())

    def json(self, *arguments: str) -> Any:
        done = self.jobmeter(*arguments, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

"""`jobmeter run --auto-size`: requests what is advised, and retries with more if that was not enough.

Each attempt is a separate `jobmeter run`, measured and stored as any other, so that the next advice learns from it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from jobmeter.cli.shared.features import input_bytes, named_features
from jobmeter.cli.shared.output import warn, write_text
from jobmeter.errors import UsageError
from jobmeter.model import Status
from jobmeter.settings import resolve

if TYPE_CHECKING:
    from jobmeter.analyse.size.advice import Advice
    from jobmeter.analyse.size.predictor import Predictor

ATTEMPTS = 4
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_OWN = {"--auto-size": 0, "--input": 1, "--report": 1}
"""Options that are not passed on to an attempt, and how many words follow each."""


def main(arguments: list[str], options: argparse.Namespace) -> int:
    """Run the attempts, and return the exit code of the last one."""
    words = _without_own(arguments[: len(arguments) - len(options.command)])
    labels = {"bytes": f"{input_bytes(options.input):.0f}"} if options.input else {}
    words += [f"--label={name}={value}" for name, value in labels.items()]
    predictor = _predictor(options)
    advice = predictor.predict(named_features({**dict(options.label), **labels})) if predictor else None
    if advice is None or not advice.completed:
        warn(f"--auto-size: no run of {_name(options)!r} has completed, so it is run as requested")
        if (options.cpus, options.memory, options.runtime) == (None, None, None):
            words = [word for word in words if word != "--enforce"]  # there is nothing to enforce yet
        return _attempt(words, options, {})[0]
    return _attempts(words, options, advice, predictor)


def _attempts(words: list[str], options: argparse.Namespace, advice: Advice, predictor: Predictor | None) -> int:
    from jobmeter.analyse.resource import MEMORY, RUNTIME

    given = {MEMORY: options.memory, RUNTIME: options.runtime}  # stays as the user requested it
    amounts = {amount.resource: amount for amount in advice.amounts if given.get(amount.resource, 0) is None}
    if not options.enforce:
        amounts.pop(RUNTIME, None)  # a requested runtime that is not a limit has no effect
    met = {Status.OOM.value: MEMORY, Status.TIMEOUT.value: RUNTIME}
    for attempt in range(1, ATTEMPTS + 1):
        requests = {f"--{resource.key}": amount.request for resource, amount in amounts.items()}
        code, status = _attempt(words, options, requests)
        resource = met.get(status)
        if resource not in amounts or not options.enforce or attempt == ATTEMPTS or predictor is None:
            break
        larger = predictor.retry(amounts[resource], attempt)
        warn(f"--auto-size: {status}; trying again with {resource.key} {larger:.0f}")
        amounts[resource] = amounts[resource]._replace(request=larger)
    return code


def _attempt(words: list[str], options: argparse.Namespace, requests: dict[str, float]) -> tuple[int, str]:
    """Run one attempt to its end. Returns the exit code, and the status in its record."""
    added = [f"{name}={value:.0f}" for name, value in requests.items()]
    with tempfile.TemporaryDirectory(prefix="jobmeter-") as folder:
        report = os.path.join(folder, "report.json")
        command = [sys.executable, "-m", "jobmeter", "run", *words, *added, f"--report={report}", "--"]
        code = _call([*command, *options.command])
        return code, _status(report, options.report)


def _call(command: list[str]) -> int:
    """Run the command, and return its exit code as a shell would. Signals that would end us are forwarded to it."""
    process: subprocess.Popen[bytes] | None = None

    def forward(number: int, _: Any) -> None:
        if process is not None:
            process.send_signal(number)

    for number in _FORWARDED:
        signal.signal(number, forward)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends SIGINT to the attempt as well
    process = subprocess.Popen(command, preexec_fn=_default_interrupt)
    code = process.wait()
    return 128 - code if code < 0 else code


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _status(report: str, copy: str | None) -> str:
    """The status in the report of an attempt; empty if there is none. The report is copied to the file `copy`."""
    try:
        with open(report, encoding="utf-8") as file:
            text = file.read()
        status = str(json.loads(text)["outcome"]["status"])
    except (OSError, ValueError, KeyError):
        return ""
    if copy is not None:
        write_text(copy, text)
    return status


def _name(options: argparse.Namespace) -> str:
    return str(options.name or os.path.basename(options.command[0]))


def _predictor(options: argparse.Namespace) -> Predictor | None:
    from jobmeter.analyse.size.policy import Policy
    from jobmeter.store import open_store
    from jobmeter.store.query.advice import fit_histories
    from jobmeter.store.query.history import name_histories

    if not options.command:
        raise UsageError("--auto-size: name the command, by which its runs are known")
    store = open_store(resolve("store", options.store), warn)
    histories = [history for history in name_histories(store, _name(options)) if history.name == _name(options)]
    return next(iter(fit_histories(histories, Policy(), None)), None)


def _without_own(words: list[str]) -> list[str]:
    kept, skip = [], 0
    for word in words:
        if skip:
            skip -= 1
        elif word in _OWN:
            skip = _OWN[word]
        elif word.partition("=")[0] not in _OWN and word != "--":
            kept.append(word)
    return kept

"""`jobmeter worker`: take jobs from a Celery broker and run them on this machine."""

from __future__ import annotations

import argparse

from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.cli.shared.output import warn
from jobmeter.engines.celery.broker import DEFAULT_BROKER, DEFAULT_QUEUE, broker_address
from jobmeter.engines.machine_capacity import machine_capacity
from jobmeter.errors import UsageError
from jobmeter.kernel.subreaper import become_subreaper
from jobmeter.settings import cpu_number, key_list, positive_bytes, whole_number


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    capacity = machine_capacity().bounded(options.cpus, options.memory, options.gpus)

    from jobmeter.engines.celery.worker import JobWorker

    worker = JobWorker(broker_address(options.broker), options.queues, capacity, warn)
    # A job whose shepherd is killed becomes our child, and we learn how it ended.
    become_subreaper()
    worker.run()
    return 0


def _queues(text: str) -> list[str]:
    queues = key_list(text)
    if not queues:
        raise UsageError("no queue is named")
    return queues


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "worker",
        "Take jobs from a Celery broker and run and measure them on this machine, until Ctrl-C: then the jobs that run "
        "are waited for, and a second Ctrl-C ends them. `jobmeter workflow run --engine celery` sends jobs.",
    )
    add = parser.add_argument
    add("--broker", metavar="URL", help=f"where the broker is (default: JOBMETER_BROKER, else {DEFAULT_BROKER})")
    queues = option_type("--queues", _queues)
    add(
        "--queues",
        metavar="NAMES",
        type=queues,
        default=[DEFAULT_QUEUE],
        help=f"take jobs of these (default: {DEFAULT_QUEUE})",
    )
    cpus = option_type("--cpus", cpu_number)
    add("--cpus", metavar="N", type=cpus, help="CPUs that jobs may request together (default: the machine's)")
    memory = option_type("--memory", positive_bytes)
    add("--memory", metavar="SIZE", type=memory, help="memory they may request together (default: the machine's)")
    add("--gpus", metavar="N", type=option_type("--gpus", whole_number), help="GPUs they may request together")
    return parser.parse_args(arguments)

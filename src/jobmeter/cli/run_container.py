"""`jobmeter run --container`: reads the container options, and runs the container."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jobmeter.cli.shared.measure_options import measure_options
from jobmeter.cli.shared.options import option_type
from jobmeter.cli.shared.output import check_report, print_summary, warn, write_report
from jobmeter.errors import OptionRefused
from jobmeter.launch.capture import Capture
from jobmeter.launch.container.client import runtime_name
from jobmeter.launch.container.spec import (
    PULL,
    ContainerOptions,
    parse_environment,
    parse_gpus,
    parse_mount,
)
from jobmeter.launch.signals import FORWARDED, Forwarder, block
from jobmeter.model import Requirement
from jobmeter.settings import one_of

if TYPE_CHECKING:
    from jobmeter.session.container_job import ContainerJob


def main(options: argparse.Namespace) -> int:
    """Run the command, or the image's own, in a container. `options` are those of `jobmeter run`."""
    job = container_job(options)
    check_report(options.report)
    capture = Capture(options.capture) if options.capture is not None else None
    if capture:
        job = job._replace(streams=capture.streams)

    from jobmeter.session.container import LaunchedContainer
    from jobmeter.session.session import Session

    container = LaunchedContainer(job)
    session = Session(container, measure_options(options), warn=warn)
    session.prepare()
    # Signals are blocked until there is a container to forward them to.
    block(FORWARDED)
    Forwarder(container.receive, exit_code=session.exit_code)
    if capture:
        capture.start()
    session.start()
    if capture:
        capture.release()
    record = session.wait()
    if capture:
        capture.finish(wait=True)
    write_report(options.report, record, session.journal_path)
    if not options.quiet:
        print_summary(record, session.journal_path)
    return session.outcome.shell_code


def container_job(options: argparse.Namespace) -> ContainerJob:
    """The job that the options of `jobmeter run` describe."""
    from jobmeter.session.container_job import ContainerJob

    requirement = Requirement(options.cpus, options.memory, options.runtime)
    return ContainerJob(container_options(options), options.command, requirement)


def container_options(options: argparse.Namespace) -> ContainerOptions:
    """The values of the options of `add_container_options`. Raises UsageError for a value that is not valid."""
    if options.tty:
        raise OptionRefused(
            "-t: a container run by jobmeter has no terminal. Leave it out; output is forwarded as it is written."
        )
    given = option_type
    return ContainerOptions(
        image=options.container,
        engine=runtime_name(options.engine),
        mounts=tuple(map(given("--mount", parse_mount), options.mount)),
        environment=dict(map(given("--env", parse_environment), options.env)),
        directory=options.workdir,
        user=options.user,
        network=options.network,
        gpus=None if options.gpus is None else given("--gpus", parse_gpus)(options.gpus),
        entrypoint=options.entrypoint,
        pull=given("--pull", one_of(*PULL))(options.pull or "missing"),
        container_name=options.container_name,
    )

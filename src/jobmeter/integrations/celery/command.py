"""`celery -A PROJECT jobmeter`: whether tasks are measured, and what they request.

Celery loads this module with every command, as an entry point of `celery.commands`. So a worker whose program does not
mention jobmeter is measured if `JOBMETER_CELERY` is set. Without that variable, loading it costs next to nothing.
"""

from __future__ import annotations

import os
from typing import Any

import click

if os.environ.get("JOBMETER_CELERY"):
    from jobmeter.integrations.celery.installation import install_from_environment

    install_from_environment()


@click.command("jobmeter")
@click.pass_context
def jobmeter(context: click.Context, /, **_: Any) -> None:
    """Show whether jobmeter measures the tasks of this application, and what they request."""
    from jobmeter.integrations.celery.listing import listing

    lines, is_well = listing(context.obj.app)
    for line in lines:
        click.echo(line)
    if not is_well:
        context.exit(1)

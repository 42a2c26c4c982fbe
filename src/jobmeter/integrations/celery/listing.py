"""What `celery jobmeter` prints."""

from __future__ import annotations

from typing import Any

from jobmeter.errors import UsageError
from jobmeter.integrations.celery.installation import VARIABLE, is_installed
from jobmeter.integrations.celery.requirement import of_task
from jobmeter.model import Requirement
from jobmeter.settings import resolve
from jobmeter.terminal import printable
from jobmeter.units import text


def listing(app: Any) -> tuple[list[str], bool]:
    """The lines, and whether all requirements are valid."""
    app.loader.import_default_modules()
    if is_installed(app):
        lines = [f"Tasks are measured. Their runs go to {printable(str(resolve('store')))}."]
    else:
        lines = [f"Tasks are not measured. Start the worker with {VARIABLE}=1, or call install(app)."]
    is_well = True
    for name, task in sorted(app.tasks.items()):
        if name.startswith("celery."):
            continue
        try:
            requirement = of_task(task)
        except UsageError as error:
            is_well = False
            says = f"not valid: {error}"
        else:
            says = "not measured" if requirement is None else _requests(requirement)
        lines.append(printable(f"{name}: {says}"))
    return lines, is_well


def _requests(requirement: Requirement) -> str:
    """`2 CPUs, memory 2 GiB, runtime 10 min`."""
    parts = []
    if requirement.cpus is not None:
        parts.append(f"{requirement.cpus:g} CPUs")
    if requirement.memory_bytes is not None:
        parts.append(f"memory {text(requirement.memory_bytes, 'bytes')}")
    if requirement.runtime_seconds is not None:
        parts.append(f"runtime {text(requirement.runtime_seconds, 'seconds')}")
    return ", ".join(parts) or "requests nothing"

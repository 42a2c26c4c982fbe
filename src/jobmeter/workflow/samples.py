"""The database that a workflow with `granularity: time_series` writes next to its logs: its jobs and their samples."""

from __future__ import annotations

from collections.abc import Callable

from jobmeter.errors import JobmeterError
from jobmeter.workflow.directory import RunDirectory

FILE = "resources.db"


def write_samples(directory: RunDirectory, store: str, warn: Callable[[str], None]) -> str | None:
    """Write `resources.db` in the directory of the run, and return its path.

    The workflow is over: if something goes wrong, there is only a warning of one line, and None is returned.
    """
    path = f"{directory.path}/{FILE}"
    try:
        from jobmeter.exchange.database import write_database
        from jobmeter.store import Selection, open_store

        of_this_run = Selection(workflow=directory.workflow, workflow_run=directory.run_id)
        write_database(path, open_store(store, warn), [of_this_run])
    except (JobmeterError, ImportError) as error:
        warn(f"no {FILE}: {error}")
        return None
    except OSError as error:
        warn(f"no {FILE}: {error.filename or path}: {error.strerror}")
        return None
    return path

"""`jobmeter doctor --clean`: remove what killed runs left behind."""

from __future__ import annotations

import json

from jobmeter.cli.shared.output import warn
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.launch.container import leftovers


def clean(*, as_json: bool) -> int:
    """Remove containers and cgroups whose jobmeter no longer lives; exit code 1 when one could not be removed."""
    done = leftovers.clean(THIS_MACHINE)
    if as_json:
        print(json.dumps(done._asdict(), indent=2))
    else:
        for name in done.containers:
            print(f"removed the container {name}")
        for path in done.groups:
            print(f"removed the cgroup {path}")
        if not any(done):
            print("nothing was left behind")
        for reason in done.hindered:
            warn(reason)
    return 1 if done.hindered else 0

"""`jobmeter doctor --clean`: remove what killed runs left behind."""

from __future__ import annotations

from jobmeter.cli.shared.output import print_json, print_line, warn
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.launch.container import leftovers


def clean(*, as_json: bool) -> int:
    """Remove containers and cgroups whose jobmeter has ended. Returns the exit code: 1 if one could not be removed."""
    cleanup = leftovers.clean(THIS_MACHINE)
    if as_json:
        entry = {
            "containers": cleanup.containers,
            "groups": cleanup.groups,
            "hindered": cleanup.failures,
            "unchecked": cleanup.unchecked,
        }
        print_json(entry)
    else:
        for name in cleanup.containers:
            print_line(f"removed the container {name}")
        for path in cleanup.groups:
            print_line(f"removed the cgroup {path}")
        if not any(cleanup[:3]):
            print_line("nothing was left behind")
        for reason in [*cleanup.failures, *cleanup.unchecked]:
            warn(reason)
    return 1 if cleanup.failures else 0

"""Fixtures that several folders of tests share, and which tests run side by side."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.container_engines"]

_ENGINES = {"docker", "podman", "engine", "rootless", "nothing_left", "start_engine"}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep those that share something costly, or count what the machine has, in one worker of pytest-xdist."""
    group = _group_of(item)
    if group is not None:
        item.add_marker(pytest.mark.xdist_group(group))


def _group_of(item: pytest.Item) -> str | None:
    path = item.nodeid.partition("::")[0]
    if _ENGINES & set(getattr(item, "fixturenames", ())) or "container" in path:
        return "containers"  # one engine of each kind, and no container of another worker's
    if "/guest/" in path:
        return "guest"  # one virtual machine
    if "browser" in path or path.endswith(("cli/workflow/test_run.py", "test_exactness.py")):
        return path  # a fixture of the module, or files on a tmpfs
    return None

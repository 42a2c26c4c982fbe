"""Fixtures that several folders of tests share, and which tests run side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests import running
from tests.records import check_journals

pytest_plugins = ["tests.container_engines"]

_ENGINES = {"docker", "podman", "engine", "rootless", "nothing_left", "start_engine"}


@pytest.fixture(autouse=True)
def every_record_follows_the_schema(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Check the records of the journals that a test wrote, or a fixture for it.

    A test that is marked `no_records` writes lines that are no records, to see what readers do with them.
    """
    yield
    folders = _new_folders(tmp_path_factory)
    if request.node.get_closest_marker("no_records") is None:
        for folder in folders:
            check_journals(folder)


_seen: set[str] = set()


def _new_folders(factory: pytest.TempPathFactory) -> list[str]:
    """Directories for tests that were not looked at before."""
    base = str(factory.getbasetemp())
    there_are = [
        *(entry.path for entry in os.scandir(base) if entry.is_dir(follow_symlinks=False)),
        *running.WORKPLACES,
    ]
    new = [folder for folder in there_are if folder not in _seen]
    _seen.update(new)
    return new


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

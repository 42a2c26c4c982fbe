"""The tree in /proc, where it ends before it is seen."""

from __future__ import annotations

import subprocess

import pytest

from jobmeter.collectors.contract import Target
from jobmeter.collectors.proc import ProcCollector
from jobmeter.errors import NoData
from jobmeter.kernel.tree import Tree


def test_a_process_that_ends_while_it_is_first_looked_at_gives_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(["sleep", "60"])
    refresh = Tree.refresh

    def end_it_and_refresh(tree: Tree) -> None:
        process.kill()
        process.wait()
        refresh(tree)

    monkeypatch.setattr(Tree, "refresh", end_it_and_refresh)
    with pytest.raises(NoData, match=f"process {process.pid} has ended"):
        ProcCollector().open(Target(process.pid, process.pid, root_is_job=True), ProcCollector.default)

"""What the table of a cluster says, on a terminal of any size."""

from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.cluster.findings import cluster_findings
from jobmeter.analyse.cluster.model import History, Waiting
from jobmeter.cli.cluster_display import screen_lines
from tests.analyse.cluster.histories import history, values


class Watching:
    """What the display needs of a monitor."""

    engine = "ray"

    def __init__(self, of: History) -> None:
        self.history = of

    def findings(self) -> Any:
        return cluster_findings(self.history)


def lines(width: int, height: int = 24, nodes: int = 3) -> list[str]:
    of = history(
        *({f"a-node-with-a-long-name-{number}": values(reserved=4.0, used=0.5) for number in range(nodes)},) * 10,
        tasks=[{"train": {"running": 2.0, "used_cpus": 0.1, "waited_cpus": 0.0}}] * 10,
        waiting=[(Waiting({"cpus": 4.0}, 5),)] * 10,
        requests={"train": {"cpus": 4.0}},
    )
    return [line.plain for line in screen_lines(Watching(of), width, height)]  # type: ignore[arg-type]


def test_reserved_stands_beside_used_node_by_node() -> None:
    shown = lines(100)
    assert "ray: 3 nodes, 1:30, 2 running, 5 waiting" == shown[0]
    assert ["node", "reserved", "used", "of", "memory", "share"] == shown[1].split()
    assert ["a-node-with-a-long-name-0", "4", "0.5", "4", "1", "GiB", "6.2", "%"] == shown[2].split()
    assert ["all", "12", "1.5", "12", "3", "GiB", "6.2", "%"] == shown[5].split()
    assert "lower num_cpus of `train` to 0.1" in " ".join(" ".join(shown[6:]).split())


@pytest.mark.parametrize("width", [200, 80, 60, 40])
@pytest.mark.parametrize("height", [24, 8, 3])
def test_no_line_is_wider_and_there_are_no_more_than_fit(width: int, height: int) -> None:
    shown = lines(width, height, nodes=5)
    assert max(map(len, shown)) <= width
    assert len(shown) < height

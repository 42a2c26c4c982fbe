"""Jobs in containers on a node: the container runtime is where the node is, not where the runner is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.workflow.test_container import MIB, USE, container, record_of
from tests.container_engines import IMAGE, PYTHON, Engine
from tests.engines.ray.place import RayPlace
from tests.ray_cluster import RayCluster


class ContainerPlace(RayPlace):
    """The runner reaches no container runtime."""

    def environment(self) -> dict[str, str]:
        nowhere = dict.fromkeys(("DOCKER_HOST", "CONTAINER_HOST"), f"unix://{self.folder}/nowhere.sock")
        return {**super().environment(), **nowhere}


@pytest.fixture
def place(tmp_path: Path, docker: Engine, nothing_left: None) -> Iterator[ContainerPlace]:
    cluster = RayCluster()
    try:
        cluster.add_node(num_cpus=2, environment={**docker.address(), **docker.settings()})
        (tmp_path / "use.py").write_text(USE)
        yield ContainerPlace(tmp_path, cluster)
    finally:
        cluster.close()


def test_a_job_runs_in_a_container_on_the_node_and_is_measured_there(place: ContainerPlace, docker: Engine) -> None:
    spec = f"""
name: on node
jobs:
  - name: use
    command: "{PYTHON} use.py 60 0.5; echo done"
    resource_requirements: {{cpus: 1, memory: 200m}}
    container: {container(docker)}
"""
    done = place.run(spec)
    assert 0 == done.returncode, done.stderr
    assert "done\n" == place.log("use")
    figures = place.result("use")
    assert 0.5 <= figures["cpu_seconds"] < 0.9
    assert 60 * MIB <= figures["memory_peak_bytes"] < 95 * MIB
    assert IMAGE == record_of(place, "use")["provenance"]["container"]["image"]

    place.cluster.add_node(num_cpus=1)
    refused = place.run(spec.replace("on node", "not everywhere"))
    assert (125, 1) == (refused.returncode, len(refused.stderr.splitlines())), refused.stderr
    assert "of the Ray cluster has no docker that answers" in refused.stderr

"""A place whose jobs run on a Ray cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.ray_cluster import RayCluster
from tests.workflow.live import LONG, Place


class RayPlace(Place):
    """Jobs run on the cluster that it is given."""

    def __init__(self, folder: Path, cluster: RayCluster) -> None:
        super().__init__(folder, engine="ray")
        self.cluster = cluster

    def engine_options(self) -> dict[str, str]:
        return {"address": self.cluster.address}

    def environment(self) -> dict[str, str]:
        ours, theirs = super().environment(), self.cluster.environment()
        return {**theirs, **ours, "RAY_TMPDIR": theirs["RAY_TMPDIR"]}

    def run_with(
        self, *options: str, prefix: Sequence[str] = (), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """`workflow run` of `spec.yaml` with just these options; `prefix` is what the command begins with."""
        command = [sys.executable, "-m", "jobmeter", "workflow", "run", "spec.yaml", "--engine", "ray", *options]
        return subprocess.run(
            [*prefix, *command, "--store", str(self.store)],
            cwd=self.folder,
            env={**self.environment(), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=LONG,
        )

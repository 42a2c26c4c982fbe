"""A workflow on a real Ray, watched while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cluster.watching import figure
from tests.ray_cluster import shared_cluster
from tests.records import violations_of_schema
from tests.waiting import LONG

BURN = "import time\nend = time.process_time() + 4\nwhile time.process_time() < end: pass"
SPEC = {
    "name": "watched",
    "jobs": [
        {
            "name": "burn",
            "command": [sys.executable, "-c", BURN],
            "resource_requirements": {"num_cpus": 2, "memory": "64m"},
        }
    ],
}


def test_the_report_of_a_workflow_on_ray_has_what_its_jobs_reserved_and_used(tmp_path: Path) -> None:
    cluster = shared_cluster()
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    words = ["run", "spec.json", "--engine", "ray", "--address", cluster.address, "--monitor", "--store", "store"]
    done = subprocess.run(
        [sys.executable, "-m", "jobmeter", "workflow", *words],
        cwd=tmp_path, env=cluster.environment(), capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    assert f"jobmeter: ray cluster {cluster.address}: 3 nodes, watched for " in done.stderr
    (path,) = (tmp_path / "store").glob("workflows/watched/*/cluster.json")
    report = json.loads(path.read_text())
    assert [] == violations_of_schema("cluster", report)
    assert 2.0 == report["cluster"]["reserved_cpus"]["peak"]
    nodes = [node for node in report["nodes"] if figure(node, "used_cpus", "peak") > 0.3]
    assert nodes, "the job was seen on a node"
    used = report["cluster"]["used_cpus"]
    assert used["mean"] * used["seconds"] > 2.0  # most of 4 s of CPU, and what Ray uses itself

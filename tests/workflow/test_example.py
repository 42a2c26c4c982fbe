from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.workflow.live import Place
from tests.workflow.test_plan import EXAMPLE


def test_the_example_runs_as_it_stands_and_is_measured(place: Place) -> None:
    directory = place.folder / "workflow"
    shutil.copytree(EXAMPLE.parent, directory)
    # Its commands say `python`, which this machine may know by another name.
    (place.folder / "bin").mkdir()
    os.symlink(sys.executable, place.folder / "bin" / "python")
    environment = {**place.environment(), "PATH": f"{place.folder}/bin:{os.environ['PATH']}"}
    spec = str(directory / EXAMPLE.name)
    done = place.call("run", spec, "--cpus", "8", "--memory", "32g", env=environment)
    assert 0 == done.returncode, done.stderr
    assert Path(directory, "model.pkl").stat().st_size > 0
    preprocess, train = place.results()
    assert ("preprocess_data", "train_model") == (preprocess["name"], train["name"])
    assert {"cpus": 8.0, "memory_bytes": 32 << 30, "runtime_seconds": 7200.0} == train["requirement"]
    assert train["memory_peak_bytes"] > 100 << 20


def test_on_a_smaller_machine_it_is_refused_with_the_way_out(place: Place) -> None:
    done = place.call("run", str(EXAMPLE), "--cpus", "2")
    assert (2, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert "--cpus, --memory or --gpus" in done.stderr

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from jobmeter.workflow.plan import load_plan
from tests.workflow.test_plan import EXAMPLE


def test_the_scripts_of_the_example_do_their_work(tmp_path: Path) -> None:
    directory = tmp_path / "workflow"
    shutil.copytree(EXAMPLE.parent, directory)

    for job in load_plan(str(directory / EXAMPLE.name)).jobs:
        words = job.script.split()
        assert words[0] == "python"
        subprocess.run([sys.executable, *words[1:]], cwd=job.directory, check=True, timeout=60)

    assert (directory / "model.pkl").stat().st_size > 0

"""Commands load what they need and no more: half of the time that a listing takes is imports."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import ROOT
from tests.runs import keep, record

PROGRAM = """
import json, sys
from jobmeter.cli.main import main
code = main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""
MEASURING = ("jobmeter.collectors", "jobmeter.engines", "jobmeter.launch", "jobmeter.meter", "jobmeter.session")
COSTLY = ("difflib", "matplotlib", "multiprocessing", "plotly", "psutil", "pydantic", "ruamel", "tomlkit")


def loaded_modules(*arguments: str) -> list[str]:
    """The modules that the command has loaded by its end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={"PYTHONPATH": f"{ROOT}/src", "HOME": "/nonexistent"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout
    modules: list[str] = json.loads(done.stderr.splitlines()[-1])
    return modules


@pytest.mark.parametrize("command", [["ls"], ["show", "last"], ["stats"], ["check", "last"], ["size", "train"]])
def test_a_command_that_reads_the_store_loads_nothing_that_measures(tmp_path: Path, command: list[str]) -> None:
    keep(str(tmp_path), record("aaa1", wall_seconds=2.0, memory_peak_bytes=1 << 20, requirement={"cpus": 1}))
    modules = loaded_modules(*command, "--store", str(tmp_path))
    unneeded = (*MEASURING, *COSTLY)
    assert [name for name in modules if name in unneeded or name.startswith(tuple(f"{one}." for one in unneeded))] == []
    assert "jobmeter.store" in modules


def test_a_run_loads_neither_what_is_costly_nor_what_it_does_not_use(tmp_path: Path) -> None:
    modules = loaded_modules("run", "--quiet", "--store", str(tmp_path), "--", "echo", "hello")
    unneeded = ("typing", "dataclasses", "inspect", "importlib.metadata", "jobmeter.store", *COSTLY)
    assert [name for name in modules if name in unneeded or name.startswith(tuple(f"{one}." for one in unneeded))] == []
    assert "jobmeter.meter.watch" in modules


def test_listing_measurements_opens_no_store() -> None:
    modules = loaded_modules("measurements", "--json")
    assert "jobmeter.collectors.proc" in modules
    assert [name for name in modules if name.startswith(("jobmeter.store", "sqlalchemy"))] == []


def commands_that_are_imported(path: Path) -> set[str]:
    """The modules of `jobmeter.cli`, without `shared`, that a file imports, at its top or in a function."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
            modules.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "jobmeter.cli")
    return {name for name in modules if name.startswith("jobmeter.cli.") and not name.startswith("jobmeter.cli.shared")}


def test_what_commands_share_knows_no_command_and_no_command_the_list_of_all() -> None:
    folder = Path(ROOT, "src/jobmeter/cli")
    imported = {str(path.relative_to(folder)): commands_that_are_imported(path) for path in folder.rglob("*.py")}
    assert [] == [path for path, names in imported.items() if path.startswith("shared/") and names]
    # `workflow` has commands too, described as those of `main` are; what completes commands has to know all.
    with_all = {path for path, names in imported.items() if "jobmeter.cli.main" in names}
    assert {"workflow/__init__.py", "complete.py"} == with_all

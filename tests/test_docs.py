"""The documentation cannot drift: help is embedded, commands and code in it are run."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scripts import embed_api, embed_sources
from scripts.embed_help import embedded, pages, undocumented

from jobmeter.settings import SETTINGS
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.job_environment import recovery_environment
from tests.container_engines import IMAGE, Engine
from tests.doc_examples import Example, blocks, examples, mask, shows
from tests.doc_variables import dictionary_keys, environment_keys, possible_variables
from tests.running import ROOT, environment, workplace
from tests.test_network import need_slirp
from tests.waiting import LONG

README = Path(ROOT, "README.md")
PAGES = [README, *pages()]
CONTAINERS = Path(ROOT, "docs", "container.md")
NETWORK = Path(ROOT, "docs", "network.md")

PARTS_OF_VARIABLES = {"JOB_ID", "JOB_NAME", "OUTPUT_DIR", "WORKFLOW_ID"}
"""`job_environment` puts JOBMETER_ and TORC_ before them."""
STATES_OF_SLURM = {
    "BOOT_FAIL", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "REQUEUE_HOLD", "SPECIAL_EXIT", "STAGE_OUT",
}  # fmt: skip
CONSTANTS_OF_THE_SYSTEM = {"F_SETPIPE_SZ", "O_PATH", "SC_CLK_TCK", "SC_OPEN_MAX", "SC_PAGE_SIZE"}
NOT_VARIABLES = PARTS_OF_VARIABLES | STATES_OF_SLURM | CONSTANTS_OF_THE_SYSTEM
"""Texts of the code that look like names of environment variables."""


def having(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def named(page: Path) -> str:
    return page.name


@pytest.fixture
def sandbox() -> tuple[str, dict[str, str]]:
    return new_sandbox()


def new_sandbox() -> tuple[str, dict[str, str]]:
    """A directory as the examples expect it, and an environment in which `jobmeter` is this one."""
    folder = workplace()
    os.symlink(f"{ROOT}/examples", f"{folder}/examples")
    Path(folder, "Makefile").write_text("all test:\n\t@:\n")
    os.mkdir(f"{folder}/bin")
    Path(folder, "bin", "jobmeter").write_text(f'#!/bin/sh\nexec {sys.executable} -m jobmeter "$@"\n')
    os.chmod(f"{folder}/bin/jobmeter", 0o755)
    path = f"{folder}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return folder, {**environment(), "HOME": folder, "PATH": path}


def difference(example: Example, printed: str) -> str:
    """The output that is shown and that which is printed, both masked, and at last as printed."""
    lines = difflib.ndiff([mask(line) for line in example.output], [mask(line) for line in printed.splitlines()])
    return "\n".join([*lines, "", printed])


def test_every_command_has_a_page_with_its_help() -> None:
    assert undocumented() == []


@pytest.mark.parametrize("page", pages(), ids=named)
def test_embedded_help_is_what_the_command_prints(page: Path) -> None:
    assert page.read_text() == embedded(page.read_text()), "python3 scripts/embed_help.py"


def test_the_api_page_is_made_from_the_docstrings() -> None:
    assert embed_api.PAGE.read_text() == embed_api.embedded(embed_api.PAGE.read_text()), "python3 scripts/embed_api.py"


def test_the_order_of_sources_is_that_of_the_code() -> None:
    text = embed_sources.PAGE.read_text()
    assert "`cgroup_cpu_seconds`, `perf_cpu_seconds`" in text
    assert text == embed_sources.embedded(text), "python3 -m scripts.embed_sources"


def test_files_that_are_named_exist() -> None:
    for page in PAGES:
        for path in re.findall(r"`([\w.-]+(?:/[\w.-]+)*\.(?:py|c))`", page.read_text()):
            places = (Path(ROOT), Path(ROOT, "src", "jobmeter"))
            assert any((place / path).exists() for place in places), f"{page.name}: {path}"


def test_the_folders_of_the_design_are_those_there_are() -> None:
    layout = blocks(Path(ROOT, "docs", "design.md"), "")[0].text
    named = set(re.findall(r"^  (\w+)/ ", layout, re.MULTILINE))
    package = Path(ROOT, "src", "jobmeter")
    assert named == {each.parent.name for each in package.glob("*/__init__.py")}
    modules = {each.stem for each in package.glob("*.py") if not each.stem.startswith("__")}
    assert modules == set(re.findall(r"\w+", layout.splitlines()[1]))
    for folder in re.findall(r"\b(\w+/\w+)/", "\n".join(layout.splitlines()[1:])):
        assert (package / folder).is_dir(), folder


def test_every_variable_that_is_read_or_set_is_documented() -> None:
    names = possible_variables(Path(ROOT, "src"))
    assert names >= NOT_VARIABLES, "no longer in the code"
    described = described_variables(Path(ROOT, "docs", "environment.md"))
    assert set() == names - NOT_VARIABLES - described


def test_every_variable_of_a_workflows_jobs_is_documented(tmp_path: Path) -> None:
    job: Any = SimpleNamespace(name="fit", number=1, input_data=("table",), output_data=())
    names = set(recovery_environment(RunDirectory(str(tmp_path), "demo", 1), job, attempt=1, exit_code=1))
    assert {"JOBMETER_JOB_NAME", "TORC_OUTPUT_DIR", "JOBMETER_DATA_DIR"} <= names
    assert set() == names - described_variables(Path(ROOT, "docs", "environment.md"))


def test_every_variable_that_is_documented_is_in_the_code() -> None:
    composed = {f"{prefix}_{name}" for prefix in ("JOBMETER", "TORC") for name in PARTS_OF_VARIABLES}
    elsewhere = {"NO_COLOR", "JOBMETER_DATA_NAME"}  # Rich reads the first; NAME stands for any name
    described = described_variables(Path(ROOT, "docs", "environment.md"))
    assert set() == described - possible_variables(Path(ROOT, "src")) - composed - elsewhere


def test_every_variable_that_changes_the_tests_is_in_contributing() -> None:
    folders = [Path(ROOT, name) for name in ("tests", "benchmarks", "scripts")]
    read = set().union(*map(environment_keys, folders))
    # The tests set the others themselves, for programs that they start.
    given = read - set().union(*map(dictionary_keys, folders)) - possible_variables(Path(ROOT, "src"))
    assert "JOBMETER_REQUIRE_PARTS" in given
    assert set() == given - described_variables(Path(ROOT, "CONTRIBUTING.md"))


def described_variables(page: Path) -> set[str]:
    """The variables in the first column of the page's tables."""
    cells = re.findall(r"^\| (`[^|]*`) \|", page.read_text(), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", cell)}


def test_the_settings_that_are_documented_are_those_there_are() -> None:
    page = Path(ROOT, "docs", "environment.md").read_text()
    table = dict(re.findall(r"^\| `([a-z_]+)` \| (?:`--[a-z-]+`)? ?\| (`[A-Z_]+`)?", page, re.MULTILINE))
    assert table == {name: f"`{each.environment}`" if each.environment else "" for name, each in SETTINGS.items()}


@pytest.mark.parametrize("page", [page for page in having("console") if page not in (CONTAINERS, NETWORK)], ids=named)
def test_examples_print_what_they_show(page: Path, sandbox: tuple[str, dict[str, str]]) -> None:
    run_examples(page, *sandbox)


@pytest.mark.usefixtures("nothing_left")
def test_examples_with_containers_print_what_they_show(docker: Engine, sandbox: tuple[str, dict[str, str]]) -> None:
    """With an image of busybox in place of `alpine`, which is little more."""
    assert docker.client("tag", IMAGE, "alpine").returncode == 0
    folder, settings = sandbox
    where = docker.environment()
    run_examples(CONTAINERS, folder, {**where, "HOME": folder, "PATH": settings["PATH"]})


def test_examples_with_a_network_print_what_they_show(sandbox: tuple[str, dict[str, str]]) -> None:
    """With a `sudo` that is not needed: root runs this test."""
    need_slirp()
    folder, settings = sandbox
    Path(folder, "bin", "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    os.chmod(f"{folder}/bin/sudo", 0o755)
    run_examples(NETWORK, folder, settings)


def shell_words(example: Example) -> list[str]:
    """What runs an example; on a terminal, that of script(1)."""
    if not example.columns:
        return ["bash", "-c", example.command]
    return ["script", "-qec", f"stty cols {example.columns}; {example.command}", "/dev/null"]


def run_examples(page: Path, folder: str, settings: dict[str, str]) -> None:
    for example in examples(page):
        done = subprocess.run(
            shell_words(example),
            cwd=folder,
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LONG,
        )
        printed = done.stdout.replace(folder, "/home/ada")
        assert done.returncode == example.exit_code, f"$ {example.command}\n{printed}"
        assert "Traceback" not in printed, example.command
        if example.output:
            assert shows(example.output, printed.splitlines()), f"$ {example.command}\n{difference(example, printed)}"


@pytest.mark.parametrize("page", having("python"), ids=named)
def test_python_that_is_shown_works(page: Path, sandbox: tuple[str, dict[str, str]]) -> None:
    folder, settings = sandbox
    for block in blocks(page, "python"):
        done = subprocess.run(
            [sys.executable, "-c", block.text],
            cwd=folder,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONG,
        )
        assert done.returncode == 0, done.stderr


def test_every_transcript_is_an_example_that_is_run_unless_it_needs_a_gpu() -> None:
    shown = {
        page.name for page in PAGES for block in blocks(page, "text") + blocks(page, "") if block.text.startswith("$ ")
    }
    assert {"gpu.md"} == shown


def test_every_page_of_a_command_shows_an_example_with_its_output() -> None:
    for page in pages():
        if "<!-- help:" in page.read_text():
            assert any(example.output for example in examples(page)), f"{page.name} shows no output"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def map_of_the_tests() -> list[tuple[str, str]]:
    """Each row of the map in CONTRIBUTING.md: the part, and where it is tested."""
    text = Path(ROOT, "CONTRIBUTING.md").read_text(encoding="utf-8")
    chart = text[text.index("## Where each part is tested") :]
    return re.findall(r"^\| (.*?) \| (.*?) \| .* \|$", chart[: chart.index("\n## ", 1)], re.MULTILINE)[1:]


def test_the_map_of_the_tests_names_every_part_of_the_source_and_only_those() -> None:
    source = Path(ROOT, "src", "jobmeter")
    modules = {path.stem for path in source.glob("*.py") if path.name[0] != "_"}
    folders = {f"{path.parent.name}/" for path in source.glob("*/__init__.py")}
    mapped = {part for cell, _ in map_of_the_tests() for part in re.findall(r"`([\w/.*]+)`", cell)}
    assert set() == (modules | folders) - mapped
    assert [] == [part for part in mapped - modules if not list(source.glob(part))]


def test_the_map_of_the_tests_names_every_folder_of_tests_and_only_tests_that_there_are() -> None:
    paths = []
    for cell, where in map_of_the_tests():
        for path in re.findall(r"`(tests/[^`]+)`", where):
            names = re.findall(r"`(\w+)`", cell) if "<name>" in path else [""]
            paths += [path.replace("<name>", name).replace("<command>", "*") for name in names]
    assert "tests/test_units.py" in paths
    assert [] == [path for path in paths if not list(Path(ROOT).glob(path))]
    folders = {path.parent.name for path in Path(ROOT, "tests").glob("*/__init__.py")}
    assert set() == folders - {path.split("/")[1] for path in paths}

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.cli.main import main
from tests.workflow.spec.convert.test_foreign import DAG, DOT, SUMMARY, TRACE
from tests.workflow.spec.writing import write

SPEC = "# top\nname: x\njobs:\n  - name: a  # first\n    command: ./run\n"


def test_a_spec_is_written_in_the_format_of_the_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spec, new = write(tmp_path, SPEC), tmp_path / "new.toml"

    assert 0 == main(["workflow", "convert", spec, "-o", str(new)])
    assert '# top\nname = "x"\n\n[[jobs]]\nname = "a"  # first\ncommand = "./run"\n' == new.read_text()
    assert f"jobmeter: {new}: 1 job\n" == capfd.readouterr().err


def test_a_format_alone_prints_it_and_losses_are_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["workflow", "convert", write(tmp_path, SPEC), "--to", "json"])
    printed = capfd.readouterr()
    assert printed.out.startswith('{\n  "name": "x",\n  "jobs": [\n')
    assert "jobmeter: not carried over: 2 comments: JSON has none\n" == printed.err


def test_graphs_of_other_tools_become_specs_with_their_losses_as_comments(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dag, summary = write(tmp_path, DAG, "dag.dot"), write(tmp_path, SUMMARY, "summary.tsv")
    dot, trace = write(tmp_path, DOT, "flow.dot"), write(tmp_path, TRACE, "trace.txt")

    assert 0 == main(["workflow", "convert", dag, "--summary", summary, "-o", str(tmp_path / "a.yaml")])
    assert 0 == main(["workflow", "convert", dot, "--trace", trace, "-o", str(tmp_path / "b.kdl")])
    assert 0 == main(["workflow", "validate", str(tmp_path / "b.kdl")])
    assert "not carried over: threads, memory and runtime" in capfd.readouterr().err
    assert (tmp_path / "a.yaml").read_text().startswith("# Made from a graph of Snakemake, as a starting point.")
    assert 'job "QUANT_gut" {' in (tmp_path / "b.kdl").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["spec.yaml"], "name a file with -o FILE, or a format with --to FORMAT to print it"),
        (["spec.yaml", "-o", "new.txt"], "new.txt: the file of a spec ends in .yaml"),
        (["spec.yaml", "-o", "spec.yaml"], "spec.yaml: is there already. Name another file, or remove it first."),
        (["spec.yaml", "-o", "no/new.toml"], "no/new.toml: No such file or directory."),
        (["spec.yaml", "--to", "json", "--trace", "spec.yaml"], "--trace and --summary go with a graph"),
        (["bad.yaml", "--to", "json"], "bad.yaml:1:1: jobs: is missing"),
        (["words.txt", "--to", "json"], "words.txt: is neither a spec, a graph of `snakemake --dag`"),
        (["none.dot", "--to", "json"], "none.dot: No such file or directory"),
    ],
)
def test_what_cannot_be_converted_is_refused(
    tmp_path: Path, words: list[str], message: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, SPEC)
    write(tmp_path, "name: x\n", "bad.yaml")
    write(tmp_path, "hello\n", "words.txt")

    assert 2 == main(["workflow", "convert", *words])
    assert message in capfd.readouterr().err
    assert SPEC == (tmp_path / "spec.yaml").read_text()

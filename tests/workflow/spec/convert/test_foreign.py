"""Graphs as Snakemake and Nextflow print them become specs to start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.errors import UsageError
from jobmeter.workflow.plan import load_plan
from jobmeter.workflow.spec.convert.conversion import write_values
from jobmeter.workflow.spec.convert.foreign import PLACEHOLDER, foreign_spec, is_foreign

# As Snakemake 9 prints it.
DAG = """\
digraph snakemake_dag {
    graph[bgcolor=white, margin=0];
    node[shape=box, style=rounded, fontname=sans,                 fontsize=10, penwidth=2];
    edge[penwidth=2, color=grey];
\t0[label = "all", color = "0.00 0.6 0.85", style="rounded"];
\t1[label = "report", color = "0.44 0.6 0.85", style="rounded"];
\t2[label = "count\\nsample: A", color = "0.22 0.6 0.85", style="rounded,dashed"];
\t3[label = "count\\nsample: B", color = "0.22 0.6 0.85", style="rounded"];
\t1 -> 0
\t2 -> 1
\t3 -> 1
}
"""
SUMMARY = (
    "output_file\tdate\trule\tlog-file(s)\tinput-file(s)\tshellcmd\tstatus\tplan\n"
    "report.txt\tMon Nov 16 21:55:06 2026\treport\t\tout/A.n,out/B.n\tcat out/A.n out/B.n > report.txt\tok\tno update\n"
    "out/A.n\tMon Nov 16 21:55:06 2026\tcount\t\tin/A.txt\twc -l in/A.txt > out/A.n\tok\tno update\n"
    "out/B.n\t-\tcount\t-\t-\t-\tmissing\tupdate pending\n"
)
DOT = """\
digraph "dag" {
p0 [shape=point,label="",fixedsize=true,width=0.1,xlabel="Channel.fromFilePairs"];
p1 [label="INDEX"];
p0 -> p1 [label="transcriptome"];
p2 [shape=circle,label="",fixedsize=true,width=0.1,xlabel="collect"];
p1 -> p2;
p3 [label="WF:QUANT"];
p2 -> p3 [label="index"];
p4 [shape=point];
p3 -> p4;
}
"""
MERMAID = """\
flowchart TB
    subgraph " "
    v0["Channel.fromPath"]
    end
    v1([INDEX])
    v2(( ))
    v3([QUANT])
    v0 --> v1
    v1 -->|index| v2
    v2 --> v3
"""
TRACE = (
    "task_id\thash\tnative_id\tprocess\ttag\tname\tstatus\texit\tcpus\tmemory\ttime\tattempt\n"
    "1\t0b/be0d1c\t1\tINDEX\t-\tINDEX\tFAILED\t1\t1\t1 GB\t1h\t1\n"
    "2\t0b/be0d1d\t2\tINDEX\t-\tINDEX\tCOMPLETED\t0\t2\t2 GB\t1h 30m\t2\n"
    "3\t0b/be0d1e\t3\tWF:QUANT\tgut\tWF:QUANT (gut)\tCOMPLETED\t0\t4\t-\t-\t1\n"
    "4\t0b/be0d1f\t4\tWF:QUANT\tlung\tWF:QUANT (lung)\tCOMPLETED\t0\t4\t-\t-\t1\n"
    "5\t0b/be0d1f\t5\tOTHER\t-\tOTHER\tCOMPLETED\t0\t4\t-\t-\t1\n"
)


def test_snakemakes_graph_and_summary_make_a_spec_that_runs(tmp_path: Path) -> None:
    spec = foreign_spec("dag", DAG, "demo", ("summary", SUMMARY))
    path = tmp_path / "demo.yaml"
    path.write_text(write_values(spec.values, "YAML", spec.losses))

    jobs = {job.name: job for job in load_plan(str(path)).jobs}
    assert ["report", "count_A", "count_B"] == list(jobs)
    assert (2, 3) == jobs["report"].blocked_by
    assert ("wc -l in/A.txt > out/A.n", PLACEHOLDER) == (jobs["count_A"].script, jobs["count_B"].script)
    assert {"rule": "count", "sample": "A"} == jobs["count_A"].labels
    assert (f"{tmp_path}/out/B.n",) == jobs["count_B"].outputs
    assert [
        "the rule `all`, which does nothing: every job runs anyway",
        "threads, memory and runtime: Snakemake does not print them. `jobmeter size` finds out what to request",
        "the commands of 1 jobs: a failing one stands in their place",
    ] == spec.losses


def test_a_summary_alone_orders_jobs_by_their_files(tmp_path: Path) -> None:
    spec = foreign_spec("summary", SUMMARY, "demo", None)
    path = tmp_path / "demo.yaml"
    path.write_text(write_values(spec.values, "YAML", spec.losses))
    assert (2, 3) == load_plan(str(path)).jobs[0].blocked_by


@pytest.mark.parametrize("text", [DOT, MERMAID])
def test_nextflows_graph_alone_has_processes_and_their_order(text: str) -> None:
    spec = foreign_spec("dag", text, "demo", None)
    names = [(job["name"], job.get("depends_on")) for job in spec.values["jobs"]]
    assert [("INDEX", None), ("QUANT", ["INDEX"])] == names
    assert "tasks and requirements: give the trace of a run with --trace" in spec.losses


def test_a_trace_of_nextflow_adds_tasks_and_what_they_requested(tmp_path: Path) -> None:
    spec = foreign_spec("dag", DOT, "demo", ("trace", TRACE))
    path = tmp_path / "demo.kdl"
    path.write_text(write_values(spec.values, "KDL", spec.losses))

    jobs = load_plan(str(path)).jobs
    assert ["INDEX", "QUANT_gut", "QUANT_lung"] == [job.name for job in jobs]
    assert (2, 2 * 2**30, 5400.0) == jobs[0].requirement[:3]
    assert (4, None) == jobs[1].requirement[:2]
    assert "tasks of processes that the graph does not have: OTHER" in spec.losses


def test_what_is_neither_is_refused() -> None:
    assert not is_foreign("hello\n")
    with pytest.raises(UsageError, match="is not a trace of Nextflow"):
        foreign_spec("dag", DOT, "demo", ("trace", "hello\n"))
    with pytest.raises(UsageError, match="is not what `snakemake --summary` prints"):
        foreign_spec("dag", DAG, "demo", ("summary", "hello\n"))
    with pytest.raises(UsageError, match="there is no job in this graph"):
        foreign_spec("dag", "digraph g {\n}\n", "demo", None)

"""What a spec may say, each in a workflow that really runs."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from tests.workflow.live import Place

JOBMETER = f"{sys.executable} -m jobmeter"


def ok(place: Place, text: str, *options: str) -> str:
    """Run a spec that must succeed; what it said."""
    done = place.run(text, *options)
    assert 0 == done.returncode, done.stderr
    return done.stderr


def test_a_diamond_by_files_alone_runs_in_its_order(place: Place) -> None:
    ok(
        place,
        "files:\n"
        + "".join(f"- {{name: {name}, path: {name}.txt}}\n" for name in ("raw", "left", "right", "out"))
        + "jobs:\n"
        "- {name: join, command: 'cat ${files.input.left} ${files.input.right} > ${files.output.out}'}\n"
        "- {name: left, command: 'sort ${files.input.raw} > ${files.output.left}'}\n"
        "- {name: right, command: 'sort -r ${files.input.raw} > ${files.output.right}'}\n"
        "- {name: make, command: 'printf \"b\\na\\n\" > ${files.output.raw}'}\n",
    )
    assert ["a", "b", "b", "a"] == place.lines("out.txt")


def test_input_and_output_files_by_name_and_by_expression_order_jobs_too(place: Place) -> None:
    ok(
        place,
        "files:\n- {name: 'part_{i}', path: 'part_{i}.txt', parameters: {i: '1:3'}}\n- {name: all, path: all.txt}\n"
        "jobs:\n"
        "- {name: join, command: 'cat part_*.txt > all.txt', input_file_regexes: ['^part_'], output_files: all}\n"
        "- {name: 'make_{i}', command: 'echo {i} > part_{i}.txt', output_files: ['part_{i}'], "
        "parameters: {i: '1:3'}}\n"
        "- {name: end, command: cp all.txt end.txt, input_files: [all]}\n",
    )
    assert ["1", "2", "3"] == place.lines("end.txt")


def test_a_hundred_parameterised_jobs_run(place: Place) -> None:
    ok(
        place,
        "jobs:\n- {name: 'job_{i:03d}', command: 'echo {i} >> log', parameters: {i: '1:100'}}\n"
        "- {name: end, command: 'sort -n log > sorted', depends_on_regexes: ['job_\\d+']}\n",
        "--no-resource-monitoring",
    )
    assert [str(i) for i in range(1, 101)] == place.lines("sorted")


SWEEP = """
parameters:
  lr: "[0.0001,0.001,0.01]"
  batch_size: "[16,32,64]"
  optimizer: "['adam','sgd']"
files:
  - name: "metrics_{lr:.4f}_{batch_size}_{optimizer}"
    path: "metrics_{lr:.4f}_{batch_size}_{optimizer}.json"
    use_parameters: [lr, batch_size, optimizer]
jobs:
  - name: aggregate
    command: "cat metrics_*.json | wc -l > count"
    input_files: ["metrics_{lr:.4f}_{batch_size}_{optimizer}"]
    depends_on: ["train_{lr:.4f}_{batch_size}_{optimizer}"]
    use_parameters: [lr, batch_size, optimizer]
  - name: "train_{lr:.4f}_{batch_size}_{optimizer}"
    command: "echo {lr} > ${files.output.metrics_{lr:.4f}_{batch_size}_{optimizer}}"
    use_parameters: [lr, batch_size, optimizer]
"""


def test_the_aggregate_of_a_sweep_with_shared_parameters_waits_for_all_18(place: Place) -> None:
    ok(place, SWEEP)
    assert ["18"] == place.lines("count")
    plan = place.json("run", "--dry-run", str(place.folder / "spec.yaml"))
    assert 18 == len(next(job for job in plan["jobs"] if job["name"] == "aggregate")["blocked_by"])
    assert (place.folder / "metrics_0.0001_16_adam.json").read_text() == "0.0001\n"


def test_zip_takes_parameters_side_by_side(place: Place) -> None:
    ok(
        place,
        "jobs:\n- {name: '{a}_{b}', command: 'echo {a}{b} >> log', parameter_mode: zip, "
        "parameters: {a: '[x, y]', b: '0.0:0.1:0.1'}}\n",
        "--cpus",
        "1",
    )
    assert ["x0.0", "y0.1"] == place.lines("log")


def test_zip_of_unequal_lengths_is_refused_before_anything_starts(place: Place) -> None:
    done = place.run(
        "jobs:\n- {name: '{a}{b}', command: touch it, parameter_mode: zip, parameters: {a: '1:2', b: '1:3'}}\n"
    )
    assert (2, False) == (done.returncode, (place.folder / "it").exists())
    assert "all need the same number of values: a has 2, b has 3" in done.stderr


def test_an_expression_that_matches_nothing_is_refused(place: Place) -> None:
    done = place.run("jobs:\n- {name: a, command: touch it}\n- {name: b, command: x, depends_on_regexes: ['^c']}\n")
    assert (2, False) == (done.returncode, (place.folder / "it").exists())
    assert ":3:46: jobs[1].depends_on_regexes[0]: no job's name matches '^c'. There are: a, b." in done.stderr


def test_a_cycle_through_files_names_them(place: Place) -> None:
    done = place.run(
        "files: [{name: x, path: x.csv}, {name: y, path: y.csv}]\njobs:\n"
        "- {name: a, command: x, input_files: x, output_files: y}\n"
        "- {name: b, command: x, input_files: y, output_files: x}\n"
    )
    assert 2 == done.returncode
    assert "these jobs wait for each other: a → b (reads y.csv) → a (reads x.csv)" in done.stderr


HANDLER = """
failure_handlers:
- name: h
  rules:
  - {exit_codes: [7, 8], recovery_script: repair.sh, max_retries: 2}
  - {exit_codes: 9, max_retries: 1}
  - {match_all_exit_codes: true, recovery_script: 'exit 1'}
jobs:
"""


def test_a_recovery_script_repairs_what_made_the_job_fail(place: Place) -> None:
    place.write("env | grep -E '^(JOBMETER|TORC)_' | sort > env; touch ok\n", "repair.sh")

    said = ok(place, HANDLER + "- {name: a, command: 'test -f ok || exit 7', failure_handler: h}\n")

    assert "a failed with exit code 7; repair.sh runs, and then it is tried again" in said
    assert [("a", 1, "failed"), ("a", 2, "completed"), ("a.recovery", 1, "completed")] == sorted(
        (each["name"], each["attempt"], each["status"]) for each in place.results()
    )
    environment = dict(line.split("=", 1) for line in place.lines("env"))
    logs = f"{place.store}/workflows/spec/1/logs"
    assert {
        "JOB_NAME": "a",
        "JOB_ID": "1",
        "RETURN_CODE": "7",
        "OUTPUT_DIR": logs,
        "WORKFLOW_ID": "spec",
        "ATTEMPT_ID": "1",
    } == {name.removeprefix("TORC_"): value for name, value in environment.items() if name.startswith("TORC_")}
    assert ("a", "7", logs, "1") == tuple(
        environment[f"JOBMETER_{name}"] for name in ("JOB_NAME", "RETURN_CODE", "OUTPUT_DIR", "ATTEMPT")
    )


def test_a_recovery_script_that_ends_in_a_backslash_does_not_end_the_runner(place: Place) -> None:
    handler = "failure_handlers: [{name: h, rules: [{exit_codes: 7, recovery_script: 'touch ok; true \\'}]}]\n"
    ok(place, handler + "jobs: [{name: a, command: 'test -f ok || exit 7', failure_handler: h}]\n")


def test_a_recovery_script_that_exits_1_gives_the_job_up(place: Place) -> None:
    done = place.run(
        HANDLER + "- {name: a, command: exit 3, failure_handler: h}\n- {name: b, command: x, depends_on: a}\n"
    )

    assert 1 == done.returncode
    assert "a: failed with exit code 3, and its recovery script failed with exit code 1" in done.stderr
    assert {"a": "failed", "b": "blocked"} == place.statuses()
    assert [1] == [each["attempt"] for each in place.results() if each["name"] == "a"]


def test_retries_of_a_rule_are_used_up(place: Place) -> None:
    place.write("true\n", "repair.sh")
    jobs = (
        "- {name: a, command: 'echo a >> log; exit 8', failure_handler: h}\n"
        "- {name: b, command: 'echo b >> log; exit 9', failure_handler: h}\n"
    )
    assert 1 == place.run(HANDLER + jobs).returncode
    assert ["a", "a", "a", "b", "b"] == sorted(place.lines("log"))


def test_ctrl_c_during_a_recovery_ends_it_and_the_job_can_be_resumed(place: Place) -> None:
    place.write("echo x > begun; test -f ok || sleep 1000\n", "repair.sh")
    run = place.start_run(HANDLER + "- {name: a, command: 'test -f ok || exit 7', failure_handler: h}\n")
    place.await_lines("begun", 1)
    run.send_signal(signal.SIGINT)
    assert 130 == run.wait()
    place.write("", "ok")
    assert 0 == place.call("resume").returncode
    assert {"a": "completed"} == place.statuses()


ACTIONS = """
jobs:
- {name: last, command: 'echo last >> log', depends_on: [one, two]}
- {name: one, command: 'echo job >> log'}
- {name: two, command: 'echo job >> log'}
actions:
- {trigger_type: on_workflow_complete, action_type: run_commands, commands: ['echo complete >> log']}
- {trigger_type: on_jobs_ready, action_type: run_commands, jobs: [last], commands: ['echo ready >> log']}
- {trigger_type: on_jobs_complete, action_type: run_commands, job_name_regexes: ['one|two'], commands: ['touch done']}
- {trigger_type: on_workflow_start, action_type: run_commands, commands: ['echo start >> log', 'echo more >> log']}
"""


def test_actions_run_in_the_right_order_and_are_measured(place: Place) -> None:
    ok(place, ACTIONS)
    assert ["start", "more", "job", "job", "ready", "last", "complete"] == place.lines("log")
    assert (place.folder / "done").exists()
    assert place.result("on_workflow_start_4.1")["memory_peak_bytes"] > 0


def test_an_action_that_fails_is_reported_and_the_workflow_goes_on(place: Place) -> None:
    done = place.run(ACTIONS.replace("echo start >> log", "echo start >> log; exit 5"))

    assert 1 == done.returncode
    assert "on_workflow_start_4.1 failed with exit code 5" in done.stderr
    assert ["start", "more", "job", "job", "ready", "last", "complete"] == place.lines("log")
    assert {"completed", "failed"} == set(place.statuses().values())


def test_actions_come_whatever_became_of_the_jobs_but_not_for_jobs_that_are_never_ready(place: Place) -> None:
    assert (
        1
        == place.run(
            ACTIONS.replace("{name: one, command: 'echo job >> log'}", "{name: one, command: 'false'}")
        ).returncode
    )
    assert ["start", "more", "job", "complete"] == place.lines("log")
    assert (place.folder / "done").exists()
    assert {"blocked"} == {place.statuses()[name] for name in ("last", "on_jobs_ready_2")}


def test_a_job_may_run_though_what_it_waits_for_failed(place: Place) -> None:
    done = place.run(
        "jobs:\n- {name: a, command: 'false'}\n"
        "- {name: needs, command: touch needs, depends_on: a, cancel_on_blocking_job_failure: true}\n"
        "- {name: usual, command: touch usual, depends_on: a}\n"
        "- {name: anyway, command: touch anyway, depends_on: [a, needs], cancel_on_blocking_job_failure: false}\n"
    )
    assert 1 == done.returncode
    assert {"a": "failed", "needs": "blocked", "usual": "blocked", "anyway": "completed"} == place.statuses()


def test_an_invocation_script_is_given_the_command(place: Place) -> None:
    place.write('#!/bin/sh\nSET=1 exec "$@"\n', "wrap.sh").chmod(0o755)
    ok(
        place,
        "jobs:\n- {name: a, command: 'sh -c ''echo $SET > a.txt''', invocation_script: wrap.sh}\n"
        '- {name: b, command: "echo $WORD > b.txt", invocation_script: "#!/bin/bash\\nset -e\\nexport WORD=two\\n"}\n',
    )
    assert (["1"], ["two"]) == (place.lines("a.txt"), place.lines("b.txt"))


@pytest.mark.parametrize(("says", "gets_sigterm"), [("true", True), ("false", False)])
def test_a_job_that_does_not_support_termination_is_killed_at_once(place: Place, says: str, gets_sigterm: bool) -> None:
    place.write("import os, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: (open('asked', 'w'), os._exit(0)))\n"
                "open('begun', 'w').write('x\\n')\ntime.sleep(1000)\n", "job.py")  # fmt: skip
    run = place.start_run(f"jobs:\n- {{name: a, command: '{sys.executable} job.py', supports_termination: {says}}}\n")
    place.await_lines("begun", 1)
    run.send_signal(signal.SIGINT)
    assert 130 == run.wait()
    assert gets_sigterm == (place.folder / "asked").exists()


@pytest.mark.parametrize(
    ("method", "order"),
    [("none", "abcd"), ("gpus_memory_runtime", "dcba"), ("gpus_runtime_memory", "dbca")],
)
def test_jobs_sort_method_says_which_go_first(place: Place, method: str, order: str) -> None:
    sizes = {"a": "memory: 1m", "b": "memory: 2m, runtime: 9m", "c": "memory: 3m, runtime: 8m", "d": "gpus: 1"}
    ok(
        place,
        f"jobs_sort_method: {method}\njobs:\n"
        + "".join(
            f"- {{name: {name}, command: 'echo {name} >> log', resource_requirements: {{{size}}}}}\n"
            for name, size in sizes.items()
        ),
        "--cpus",
        "1",
        "--gpus",
        "1",
    )
    assert list(order) == place.lines("log")


def test_what_needs_nodes_is_kept_in_the_plan_and_reported_once(place: Place) -> None:
    said = ok(
        place,
        "slurm_defaults: {qos: high}\nslurm_schedulers: [{name: s, account: x, nodes: 2}]\nuse_pending_failed: true\n"
        "compute_node_wait_for_new_jobs_seconds: 90\n"
        "resource_requirements: [{name: wide, num_nodes: 2, num_cpus: 1, memory: 1m}]\njobs:\n"
        "- {name: 'j{i}', command: 'true', resource_requirements: wide, scheduler: s, parameters: {i: '1:3'}}\n"
        "actions:\n- {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: s}\n",
    )
    lines = [line for line in said.splitlines() if "no nodes" in line or "without effect" in line]
    assert [
        "jobmeter: engine local has no nodes to request: slurm_schedulers, slurm_defaults, schedule_nodes, num_nodes "
        "not used",
        "jobmeter: without effect: use_pending_failed, compute_node_wait_for_new_jobs_seconds",
    ] == lines
    plan = json.loads((place.store / "workflows/spec/1/plan.json").read_text())
    assert {"qos": "high"} == plan["node_requests"]["defaults"]
    assert (2, "s") == (plan["jobs"][0]["num_nodes"], plan["jobs"][0]["scheduler"])


def test_variables_and_the_environment_of_the_workflow_reach_every_job(place: Place) -> None:
    ok(
        place,
        "variables: {where: here}\nenv: {LEVEL: info, MODE: slow}\njobs:\n"
        "- {name: 'a_{where}', command: 'echo {where} $LEVEL $MODE > a.txt', env: {MODE: fast}}\n",
    )
    assert ["here info fast"] == place.lines("a.txt")


def test_a_pattern_with_parameters_that_the_job_lacks_means_all_of_them(place: Place) -> None:
    ok(
        place,
        "jobs:\n- {name: 'report_{a}', command: 'ls part_{a}_* | wc -l > report_{a}', depends_on: 'part_{a}_{b:02d}', "
        "parameters: {a: '1:2'}}\n"
        "- {name: 'part_{a}_{b:02d}', command: 'touch part_{a}_{b:02d}', parameters: {a: '1:2', b: '1:3'}}\n",
    )
    assert (["3"], ["3"]) == (place.lines("report_1"), place.lines("report_2"))


def test_jobs_see_their_names_and_numbers(place: Place) -> None:
    ok(place, "name: My Flow\njobs:\n- {name: a, command: 'env | grep ^TORC_ | sort > env'}\n")
    assert [
        "TORC_ATTEMPT_ID=1",
        "TORC_JOB_ID=1",
        "TORC_JOB_NAME=a",
        f"TORC_OUTPUT_DIR={place.store}/workflows/my-flow/1/logs",
        "TORC_WORKFLOW_ID=my-flow",
    ] == place.lines("env")

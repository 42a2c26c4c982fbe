"""Bad input on the command line: one clear line, exit 2, nothing started and nothing kept."""

from __future__ import annotations

import pytest

from tests.workflow.live import Place

BOMB = "\n".join(
    ["x-0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    + [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    + ["jobs: [{name: a, command: touch begun, labels: {k: *a9}}]"]
)
A = "{name: a, command: touch begun}"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("jobs: [{name: a, command: x, blocked_by: b}, {name: b, command: x, blocked_by: a}]", "a → b → a"),
        (f"jobs: [{A}, {{name: b, command: x, blocked_by: aa}}]", "Did you mean 'a'?"),
        (f"jobs: [{A}, {A}]", "there is another job 'a'"),
        ("jobs: [{name: a, command: touch begun, resource_requirements: {memory: 8gigs}}]", "'8gigs' is not an amount"),
        ("jobs: [{name: a, command: touch begun, resource_requirements: {memory: 8}}]", "Write 8g or 8m"),
        ("", "the spec is empty"),
        (BOMB, "spec.yaml:"),
        ("jobs: [{name: a/b, command: touch begun}]", "'a/b'"),
        ("jobs: [{name: a, command: touch begun, resource_requirements: {cpus: 4000}}]", "--cpus, --memory or --gpus"),
        ("jobs: [{name: a, command: touch begun, inputs: [gone]}]", "gone, which is not there"),
        ("jobs: [{name: a, command: touch begun, parameters: {i: 1-3}}]", "Write 1:3"),
        ("jobs: [{name: a, comand: touch begun}]", "Did you mean 'command'?"),
    ],
)
def test_a_spec_that_cannot_be_run_is_refused_in_one_line_and_leaves_nothing(
    place: Place, spec: str, message: str
) -> None:
    done = place.run(spec)
    assert (2, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr
    assert message in done.stderr
    assert (False, False) == ((place.folder / "begun").exists(), place.store.exists())


def test_a_file_that_is_not_there_is_refused_too(place: Place) -> None:
    done = place.call("run", "nothing.yaml")
    assert (2, "jobmeter: nothing.yaml: No such file or directory\n") == (done.returncode, done.stderr)

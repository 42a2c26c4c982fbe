"""Which worker has which task. What is sent goes to a broker in memory, and reports come in the order of each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.engines.celery.broker import make_app
from jobmeter.engines.celery.dispatch import Dispatch
from jobmeter.engines.celery.known_workers import KnownWorkers
from jobmeter.engines.celery.orders import Orders
from jobmeter.engines.contract import Ended, Measure, Task, Token
from jobmeter.journal.writer import JournalFile
from tests.engines.celery.worker_states import worker
from tests.parts import need_module
from tests.waiting import wait_for


class Runner:
    """Takes what a dispatch reports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = JournalFile(f"{folder}/journal.jsonl", {})
        self.tokens: list[Token] = []  # one each time that a task was given to a worker
        self.ends: list[Ended] = []
        self.warnings: list[str] = []
        self.warn, self.ended = self.warnings.append, self.ends.append
        need_module("celery")
        orders = Orders(make_app("memory://"), "replies", 30.0)
        self.dispatch = Dispatch(KnownWorkers(), orders, self, "q", 30.0)

    def keep_token(self, task: Task, token: Token) -> None:
        self.tokens.append(token)

    def broke(self, error: Exception) -> None:
        raise error

    def start(self, number: int = 1) -> None:
        out = f"{self.folder}/{number}"
        workflow = {"id": "w", "name": "w", "run_id": 1, "job_id": number, "attempt": 1}
        self.dispatch.start(
            Task(number, 1, f"job{number}", ["true"], str(self.folder), {}, out, out, workflow, measure=Measure())  # type: ignore[arg-type]
        )

    def give_back(self, token: Token) -> None:
        self.dispatch.take_reports([(token["task"], 0, ["returned"])])


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_job_that_its_worker_gives_back_goes_to_another(runner: Runner) -> None:
    runner.dispatch.take_beacon(worker("a", 1))
    runner.start()
    runner.dispatch.take_beacon(worker("a", 1, closing=True))
    runner.dispatch.take_beacon(worker("b", 1))
    runner.give_back(runner.tokens[0])
    assert (["a", "b"], []) == ([token["worker"] for token in runner.tokens], runner.ends)


def test_a_job_that_never_came_to_a_worker_that_closed_goes_to_another(runner: Runner) -> None:
    runner.dispatch.take_beacon(worker("a", 1))
    runner.start()

    def is_at_another() -> bool:
        for state in (worker("a", 1, closing=True), worker("b", 1)):
            runner.dispatch.take_beacon(state)
        runner.dispatch.check_workers()
        return ["a", "b"] == [token["worker"] for token in runner.tokens]

    wait_for(is_at_another, "that the other worker gets it")
    assert [] == runner.ends


@pytest.mark.parametrize("number", [1, None])
def test_a_cancelled_job_that_its_worker_gives_back_runs_nowhere(runner: Runner, number: int | None) -> None:
    runner.dispatch.take_beacon(worker("a", 1))
    runner.start()
    runner.dispatch.cancel(number, at_once=False)
    runner.dispatch.take_beacon(worker("b", 1))
    runner.give_back(runner.tokens[0])
    assert ["a"] == [token["worker"] for token in runner.tokens]
    assert ["cancelled"] == [ended.record and ended.record["outcome"]["status"] for ended in runner.ends]

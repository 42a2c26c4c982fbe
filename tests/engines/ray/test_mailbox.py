"""Reports and cancels on their ways: the mailbox, and the order in which reports are taken."""

from __future__ import annotations

import asyncio

import pytest

from jobmeter.engines.ray import mailbox as module
from jobmeter.engines.ray.mailbox import MOST_BYTES, Mailbox
from jobmeter.engines.ray.sent_task import SentTask
from tests.engines.test_contract import TASK


def reports(*words: str) -> list[list[str]]:
    return [[word] for word in words]


def test_reports_that_overtake_others_wait_and_those_that_come_again_are_left_out() -> None:
    sent = SentTask(TASK, {})
    assert [] == list(sent.in_order(2, reports("c", "d")))
    assert reports("a") == list(sent.in_order(0, reports("a")))
    assert reports("b", "c", "d") == list(sent.in_order(0, reports("a", "b")))
    assert [] == list(sent.in_order(1, reports("b", "c")))
    assert reports("e") == list(sent.in_order(4, reports("e")))


def test_whoever_waits_for_reports_gets_them_when_they_come() -> None:
    async def scenario() -> None:
        mailbox = Mailbox()
        waiting = asyncio.ensure_future(mailbox.take())
        await asyncio.sleep(0)
        await mailbox.put(("task", 0, reports("a")), 1)
        assert [("task", 0, reports("a"))] == await waiting

    asyncio.run(scenario())


def test_a_mailbox_that_is_full_takes_more_only_when_it_was_emptied() -> None:
    async def scenario() -> None:
        mailbox = Mailbox()
        await mailbox.put(("task", 0, reports("a")), MOST_BYTES)
        more = asyncio.ensure_future(mailbox.put(("task", 1, reports("b")), 1))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not more.done()
        assert 1 == len(await mailbox.take())
        await more
        assert [("task", 1, reports("b"))] == await mailbox.take()

    asyncio.run(scenario())


def test_a_node_hears_of_the_cancels_that_it_does_not_know() -> None:
    async def scenario() -> None:
        mailbox = Mailbox()
        await mailbox.cancel("one", False)
        await mailbox.cancel(None, True)
        assert (True, [("one", False), (None, True)]) == await mailbox.cancels(0)
        assert (True, [(None, True)]) == await mailbox.cancels(1)

    asyncio.run(scenario())


def test_a_driver_that_no_longer_requests_messages_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        mailbox = Mailbox()
        waiting = asyncio.ensure_future(mailbox.take())
        await asyncio.sleep(0)
        monkeypatch.setattr(module, "PATIENCE", -1.0)
        assert mailbox.driver_lives()  # it waits for an answer, however long that takes
        await mailbox.put(("task", 0, reports("a")), 1)
        await waiting
        await mailbox.cancel("one", False)
        assert (False, [("one", False)]) == await mailbox.cancels(0)

    asyncio.run(scenario())

"""Calls that are cancelled: the request in flight settles, and workers do the rest."""

from __future__ import annotations

import asyncio

import pytest

from convsessions import operations
from convsessions.agents import DjangoConversationsSession
from convsessions.delivery.threads import in_thread, submit
from convsessions.models import ConversationSession, RequestAttempt, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, eventually, messages, texts

from .watching import in_flight, the_history

# -- cancellation ----------------------------------------------------------------------------------------------------


def cancelled_in_the_middle(sandbox, times=1):
    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(1, prefix="before"))
        sandbox.settings(latency=0.3)
        adding = asyncio.create_task(session.add_items(messages(45)))
        await in_flight()
        for _ in range(times):
            adding.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await adding
        sandbox.settings(latency=0)

    return story()


@pytest.mark.parametrize("times", [1, 3])
def test_a_cancellation_lets_the_request_in_flight_settle_and_leaves_the_rest_to_workers(run, sandbox, rings, times):
    run(cancelled_in_the_middle(sandbox, times))

    session = ConversationSession.objects.get()
    write = WriteIntent.objects.latest("sequence")
    assert session.lease_token is None
    assert not RequestAttempt.objects.filter(outcome=None).exists()
    assert (write.state, write.items_saved) == (WriteState.SENDING, 20)
    assert rings == [str(session.pk)]
    operations.deliver(session.pk)
    assert the_history(sandbox) == ["before0", *texts(messages(45))]


def test_a_cancellation_while_it_waits_for_another_worker(run, sandbox, rings):
    session = operations.create_session(key="k")
    append(session, 45, prefix="a")
    sandbox.settings(latency=0.5)
    worker = submit(operations.deliver, session.pk)
    eventually(RequestAttempt.objects.exists)

    async def story():
        adding = asyncio.create_task(DjangoConversationsSession(key="k").add_items(messages(1, prefix="b")))
        await in_thread(eventually, lambda: WriteIntent.objects.count() == 2)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert worker.running()

    run(story())
    worker.result()
    assert the_history(sandbox) == [*texts(messages(45, prefix="a")), "b0"]


def test_a_timeout_is_a_cancellation(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(1, prefix="before"))
        sandbox.settings(latency=0.3)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await session.add_items(messages(45))
        sandbox.settings(latency=0)
        await session.add_items(messages(45))
        return await session.get_items()

    assert texts(run(story())) == ["before0", *texts(messages(45))]
    assert WriteIntent.objects.count() == 2

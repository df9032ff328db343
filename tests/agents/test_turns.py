"""Calls that wait their turn behind other writes, and who is woken for them."""

from __future__ import annotations

import asyncio

from convsessions import operations
from convsessions.agents import DjangoConversationsSession
from convsessions.delivery.threads import in_thread, submit
from convsessions.models import ConversationSession, RequestAttempt, WriteIntent
from tests.histories import append, eventually, messages, texts

from .watching import in_flight, the_history

# -- others at work --------------------------------------------------------------------------------------------------


def test_what_was_queued_before_goes_first(run, sandbox):
    session = operations.create_session(key="k")
    for prefix in "ab":
        append(session, 1, prefix=prefix)

    run(DjangoConversationsSession(key="k").add_items(messages(1, prefix="c")))

    assert the_history(sandbox) == ["a0", "b0", "c0"]


def test_a_call_waits_its_turn_behind_a_worker(run, sandbox):
    session = operations.create_session(key="k")
    append(session, 45, prefix="a")
    sandbox.settings(latency=0.1)
    worker = submit(operations.deliver, session.pk)
    eventually(RequestAttempt.objects.exists)

    run(DjangoConversationsSession(key="k").add_items(messages(1, prefix="b")))
    worker.result()

    assert the_history(sandbox) == [*texts(messages(45, prefix="a")), "b0"]


def test_what_is_queued_behind_is_left_to_others(run, sandbox, rings):
    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(1, prefix="a"))
        sandbox.settings(latency=0.3)
        adding = asyncio.create_task(session.add_items(messages(25, prefix="b")))
        await in_flight()
        row = await in_thread(ConversationSession.objects.get)
        await operations.aappend_items(row.pk, messages(25, prefix="c"))
        await adding
        return row

    row = run(story())

    assert list(WriteIntent.objects.order_by("sequence").values_list("state", flat=True)) == ["saved"] * 2 + ["pending"]
    assert rings == [str(row.pk)]


def test_no_doorbell_is_rung_for_what_is_delivered_at_once(run, sandbox, rings):
    run(DjangoConversationsSession(key="k").add_items(messages(45)))

    assert rings == []


def test_a_slow_session_keeps_no_other_waiting(run, sandbox, quick):
    quick["REQUEST_TIMEOUT"] = 20.0

    async def story():
        slow, quick = (DjangoConversationsSession(key=key) for key in ("slow", "quick"))
        await slow.add_items(messages(1))
        sandbox.fault("hang_after", operation="append_items", seconds=5, times=1)
        adding = asyncio.create_task(slow.add_items(messages(1)))
        await in_flight()
        await asyncio.sleep(0.2)  # the fault is taken by the request that comes first
        await quick.add_items(messages(1))
        assert not adding.done()
        await adding

    run(story())

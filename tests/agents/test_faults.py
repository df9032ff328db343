"""What a call does when the API, the network or somebody else gets in its way."""

from __future__ import annotations

import asyncio
import time

import pytest

from convsessions import operations
from convsessions.agents import DjangoConversationsSession
from convsessions.delivery.threads import in_thread
from convsessions.exceptions import IdempotencyConflict, RemoteReadFailed, WriteNotSettled, WriteRefused
from convsessions.models import ConversationSession, RequestAttempt, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, append_requests, eventually, messages, texts

from .watching import the_history


def test_45_items_with_each_reply_lost_once(run, sandbox):
    sandbox.fault("lost_after", operation="append_items", times=3)

    run(DjangoConversationsSession(key="k").add_items(messages(45)))

    assert the_history(sandbox) == texts(messages(45))
    assert len(append_requests(sandbox, ConversationSession.objects.get())) == 3
    lost = RequestAttempt.objects.filter(operation="append_items").values_list("outcome", flat=True)
    assert list(lost) == ["unknown"] * 3


@pytest.mark.parametrize(
    "fault",
    [
        ("lost_before", {}),
        ("error_before", {"status": 503}),
        ("error_after", {"status": 500}),
        ("hang_after", {"seconds": 1.5}),
        ("truncated", {}),
        ("rate_limited", {"retry_after": "0.1"}),
        ("locked", {}),
    ],
    ids=lambda fault: fault[0],
)
def test_45_items_with_another_fault_in_the_middle(run, sandbox, fault):
    kind, options = fault
    sandbox.fault(kind, operation="append_items", skip=1, **{"times": 1, **options})

    run(DjangoConversationsSession(key="k").add_items(messages(45)))

    assert the_history(sandbox) == texts(messages(45))


def test_pop_and_clear_with_lost_replies(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(3))
        sandbox.fault("lost_after", operation="delete_item", times=1)
        popped = await session.pop_item()
        left = await session.get_items()
        sandbox.fault("lost_after", operation="delete_conversation", times=1)
        await session.clear_session()
        return popped, left, await session.get_items()

    popped, left, after = run(story())
    assert texts([popped]) == ["m2"]
    assert texts(left) == ["m0", "m1"]
    assert after == []


def test_a_read_is_tried_again(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(3))
        sandbox.fault("error_before", operation="list_items", status=500, times=2)
        return await session.get_items()

    assert texts(run(story())) == texts(messages(3))


def test_a_read_that_keeps_failing(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(3))
        sandbox.fault("error_before", operation="list_items", status=500, times=1000)
        await session.get_items()

    with pytest.raises(RemoteReadFailed):
        run(story())


def test_a_refused_write_says_what_the_api_said(run, sandbox):
    item = {"type": "message", "role": "user", "content": "m", "unheard_of": 1}

    async def story():
        session = DjangoConversationsSession(key="k")
        with pytest.raises(WriteRefused, match=r"refused: unknown_parameter at items\[0\]") as refused:
            await session.add_items([item])
        await session.add_items(messages(1))
        return refused.value.write

    assert run(story()).state == WriteState.REFUSED
    assert the_history(sandbox) == ["m0"]


# -- unknown within the caller's patience ----------------------------------------------------------------------------


def test_a_write_that_does_not_settle_in_time_goes_on_without_the_caller(run, sandbox, rings):
    sandbox.fault("error_before", operation="append_items", status=503, times=1000)
    session = DjangoConversationsSession(key="k", patience=0.5)

    with pytest.raises(WriteNotSettled) as raised:
        run(session.add_items(messages(2)))

    assert raised.value.write.pk == WriteIntent.objects.get().pk
    sandbox.clear_faults()
    eventually(lambda: operations.deliver(raised.value.write.session_id) and the_history(sandbox))
    assert the_history(sandbox) == ["m0", "m1"]


def test_the_same_call_after_the_error_is_the_same_write(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k", patience=0.3)
        sandbox.fault("error_before", operation="append_items", status=503, times=1000)
        with pytest.raises(WriteNotSettled):
            await session.add_items(messages(2))
        sandbox.clear_faults()
        session.patience = 20
        await session.add_items(messages(2))
        await session.add_items(messages(2))
        return await session.get_items()

    assert texts(run(story())) == ["m0", "m1", "m0", "m1"]
    assert WriteIntent.objects.count() == 2


def test_another_write_that_succeeds_ends_the_memory_of_one_that_raised(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k", patience=0.3)
        sandbox.fault("error_before", operation="append_items", status=503, times=1000)
        with pytest.raises(WriteNotSettled):
            await session.add_items(messages(1, prefix="yes"))
        sandbox.clear_faults()
        session.patience = 20
        await session.add_items(messages(1, prefix="no"))
        await session.add_items(messages(1, prefix="yes"))
        return await session.get_items()

    assert texts(run(story())) == ["yes0", "no0", "yes0"]


def test_an_idempotency_key_makes_it_the_same_write_in_another_process(run, sandbox):
    async def job():
        session = DjangoConversationsSession(key="k", idempotency_key="job-7")
        await session.add_items(messages(1))
        await session.add_items(messages(1))
        await session.add_items(messages(1, prefix="n"))
        return await session.pop_item()

    first, again = run(job()), run(job())

    assert first == again
    assert the_history(sandbox) == ["m0", "m0"]


def test_an_idempotency_key_of_one_call(run, sandbox):
    async def story():
        for _ in range(2):
            await DjangoConversationsSession(key="k").add_items(messages(1), idempotency_key="one")
        with pytest.raises(IdempotencyConflict):
            await DjangoConversationsSession(key="k").add_items(messages(2), idempotency_key="one")

    run(story())

    assert the_history(sandbox) == ["m0"]


def test_a_read_waits_for_what_was_recorded_before_it(run, sandbox):
    """A run that is resumed elsewhere must not find the history without the write that is still on its way."""

    async def story():
        sandbox.fault("error_before", operation="append_items", status=503, times=2)
        with pytest.raises(WriteNotSettled):
            await DjangoConversationsSession(key="k", patience=0.0).add_items(messages(2))
        return await DjangoConversationsSession(key="k").get_items()

    assert texts(run(story())) == ["m0", "m1"]


# -- a person is needed ----------------------------------------------------------------------------------------------


def test_nobody_waits_behind_a_write_that_needs_a_person(run, sandbox):
    session = operations.create_session(key="k")
    operations.deliver(session.pk)
    append(session, 1, prefix="before")
    operations.deliver(session.pk)
    session.refresh_from_db()
    sandbox.append_foreign(session.conversation_id, messages(1))
    sandbox.fault("lost_after", operation="append_items", times=1)
    began = time.monotonic()  # a wait would take WAIT_MAX, 30 seconds

    with pytest.raises(WriteNotSettled) as ours:
        run(DjangoConversationsSession(key="k").add_items(messages(1)))
    with pytest.raises(WriteNotSettled) as behind:
        run(DjangoConversationsSession(key="k").add_items(messages(1, prefix="later")))
    with pytest.raises(WriteNotSettled) as read:
        run(DjangoConversationsSession(key="k").get_items())

    assert time.monotonic() - began < 20
    assert ours.value.write.state == WriteState.AMBIGUOUS
    assert behind.value.write.state == WriteState.PENDING
    assert behind.value.__cause__.write.pk == read.value.write.pk == ours.value.write.pk


def test_a_cancelled_write_raises(run, sandbox):
    async def story():
        sandbox.fault("error_before", operation="append_items", status=503, times=1000)
        adding = asyncio.create_task(DjangoConversationsSession(key="k").add_items(messages(1)))
        write = await in_thread(eventually, WriteIntent.objects.first)
        await operations.acancel_write(write.pk)
        await adding

    with pytest.raises(WriteRefused, match="is cancelled: author"):
        run(story())

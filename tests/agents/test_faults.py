"""What a call does when the API, the network or somebody else gets in its way."""

from __future__ import annotations

import asyncio
import time

import pytest

from convsessions import operations
from convsessions.agents import DjangoConversationsSession
from convsessions.delivery.threads import in_thread, submit
from convsessions.exceptions import IdempotencyConflict, RemoteReadFailed, WriteNotSettled, WriteRefused
from convsessions.models import ConversationSession, RequestAttempt, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, append_requests, eventually, messages, remote_texts, texts

RINGS: list[str] = []


def ring(session_id: str) -> None:
    RINGS.append(session_id)


@pytest.fixture(autouse=True)
def rings(quick):
    """The doorbells that were rung: ids of sessions."""
    quick["DISPATCHER"] = "tests.agents.test_faults.ring"
    RINGS.clear()
    return RINGS


async def in_flight():
    """Returns when a request that appends is on its way."""
    await in_thread(eventually, RequestAttempt.objects.filter(operation="append_items", outcome=None).exists)


def the_history(sandbox):
    return remote_texts(sandbox, ConversationSession.objects.get())


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

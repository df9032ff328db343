"""Runs that the SDK cannot resume: their write is taken over, repaired, and the run goes on."""

from __future__ import annotations

import json
import sys

import pytest
from agents import Agent, OpenAIConversationsSession, Runner, RunState, UserError, function_tool
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from openai import APIError, AsyncOpenAI

from convsessions import operations
from convsessions.agents import DjangoConversationsSession, hand_over
from convsessions.delivery.threads import in_thread
from convsessions.exceptions import InvalidInput, WriteNotSettled
from convsessions.models import ConversationSession, Reconciliation, WriteIntent
from convsessions.states import Verdict, WriteState
from tests.histories import messages

from .scripted import ScriptedModel, calls, says

REFUNDED: list[str] = []
STUCK = "Cannot reconcile the pending Session write"


@pytest.fixture(autouse=True)
def _nothing_refunded():
    REFUNDED.clear()


@function_tool(needs_approval=True)
def refund(order: str) -> str:
    REFUNDED.append(order)
    return f"refunded {order}"


def agent(count, *more):
    refunds = [calls("refund", f"r{n}", order=str(n)) for n in range(count)]
    return Agent("a", model=ScriptedModel(refunds, [says("Done.")], *more), tools=[refund])


async def approved(the_agent, session):
    """The state of a run whose every interruption was approved."""
    parked = await Runner.run(the_agent, "Refund", session=session)
    state = parked.to_state()
    for interruption in state.get_interruptions():
        state.approve(interruption)
    return state


def kinds(sandbox, conversation_id):
    """The history in short: types, with the call id of calls and outputs."""
    return [(item["type"], item.get("call_id", "")) for item in sandbox.items(conversation_id)]


def whole(count, *, said=True):
    ids = [f"r{n}" for n in range(count)]
    history = [
        ("message", ""),
        *[("function_call", one) for one in ids],
        *[("function_call_output", one) for one in ids],
    ]
    return [*history, ("message", "")] if said else history


async def stuck(sandbox, the_agent, *faults):
    """A run with the SDK's own session, which fails while it is resumed and then cannot be resumed any more."""
    async with AsyncOpenAI(api_key="sk-test", base_url=sandbox.base_url, max_retries=0) as client:
        session = OpenAIConversationsSession(openai_client=client)
        state = await approved(the_agent, session)
        for kind, skip in faults:
            sandbox.fault(kind, operation="append_items", times=1, skip=skip)
        with pytest.raises(APIError):
            await Runner.run(the_agent, state, session=session)
        with pytest.raises(UserError, match=STUCK):
            await Runner.run(the_agent, state, session=session)
        return state, session.session_id


@pytest.mark.parametrize(
    ("count", "faults"),
    [(1, [("lost_after", 0)]), (25, [("lost_after", 0)]), (25, [("lost_before", 1)]), (25, [("lost_after", 1)])],
    ids=["one request, stored", "the first of two, stored", "the second of two, lost", "both stored"],
)
def test_what_was_stored_is_found_and_what_is_missing_is_added(run, sandbox, count, faults):
    the_agent = agent(count)

    async def story():
        state, conversation_id = await stuck(sandbox, the_agent, *faults)
        handed = await hand_over(state)
        session = DjangoConversationsSession(conversation_id=conversation_id)
        result = await Runner.run(the_agent, handed.state, session=session)
        return conversation_id, handed, result.final_output

    conversation_id, handed, said = run(story())

    assert handed.may_resume
    assert handed.write.state == WriteState.SAVED
    assert said == "Done."
    assert kinds(sandbox, conversation_id) == whole(count)
    assert len(REFUNDED) == count


def test_what_the_history_does_not_tell_is_left_to_an_operator(run, sandbox):
    the_agent = agent(1)

    async def story():
        state, conversation_id = await stuck(sandbox, the_agent, ("lost_after", 0))
        output = sandbox.items(conversation_id)[-1]
        sandbox.append_foreign(conversation_id, [{name: output[name] for name in ("type", "call_id", "output")}])
        return state.to_string(), conversation_id, await hand_over(state)

    text, conversation_id, handed = run(story())
    assert (handed.may_resume, handed.write.state) == (False, WriteState.AMBIGUOUS)
    assert handed.state._pending_session_write is not None

    operations.resolve_write(handed.write.pk, "remove_duplicates", reason="somebody helped")
    again = run(hand_over(text))

    assert again.may_resume
    assert again.write.pk == handed.write.pk
    assert kinds(sandbox, conversation_id) == whole(1, said=False)

    async def resumed():
        state = await RunState.from_string(the_agent, again.state)
        return await Runner.run(the_agent, state, session=DjangoConversationsSession(conversation_id=conversation_id))

    run(resumed())
    assert kinds(sandbox, conversation_id) == whole(1)


def test_where_the_end_of_the_history_is_not_what_it_was(run, sandbox):
    """Somebody removed items: nothing marks where the write began, so nothing is guessed."""
    the_agent = agent(1)

    async def stuck_without_storing():
        async with AsyncOpenAI(api_key="sk-test", base_url=sandbox.base_url, max_retries=0) as client:
            session = OpenAIConversationsSession(openai_client=client)
            state = await approved(the_agent, session)
            sandbox.fault("lost_before", operation="append_items", times=1)
            with pytest.raises(APIError):
                await Runner.run(the_agent, state, session=session)
            await session.pop_item()
            return state, session.session_id

    async def both():
        state, conversation_id = await stuck_without_storing()
        return conversation_id, await hand_over(state)

    conversation_id, handed = run(both())

    assert handed.write.state == WriteState.AMBIGUOUS
    assert Reconciliation.objects.get().verdict == Verdict.UNDECIDED
    assert kinds(sandbox, conversation_id) == [("message", "")]
    assert operations.inspect_write(handed.write.pk).possible[0] == "resend"


def test_a_write_of_our_own_session_is_recognised(run, sandbox):
    """The SDK may be stuck with ours, too: the API gives items back in another form than they were sent."""
    the_agent = agent(1)

    async def story():
        session = DjangoConversationsSession(key="k")
        state = await approved(the_agent, session)
        session.patience = 0.2
        sandbox.fault("error_before", operation="append_items", status=503, times=1000)
        with pytest.raises(WriteNotSettled):
            await Runner.run(the_agent, state, session=session)
        sandbox.clear_faults()
        session.patience = 20
        with pytest.raises(UserError, match=STUCK):
            await Runner.run(the_agent, state, session=session)
        before = await in_thread(WriteIntent.objects.count)
        handed = await hand_over(state)
        assert await in_thread(WriteIntent.objects.count) == before
        await Runner.run(the_agent, handed.state, session=session)
        return session.session_id

    assert kinds(sandbox, run(story())) == whole(1)
    assert len(REFUNDED) == 1


def test_a_state_without_a_stuck_write_can_be_resumed_as_it_is(run, sandbox):
    the_agent = agent(1)

    async def story():
        session = DjangoConversationsSession(key="k")
        state = await approved(the_agent, session)
        return state.to_json(), await hand_over(state), await hand_over(state.to_json())

    document, of_object, of_json = run(story())
    assert of_object.may_resume
    assert of_json.may_resume
    assert of_json.state == document
    assert of_json.write is None


def test_something_that_is_no_state(run, sandbox):
    for wrong in ("no JSON", "[]", {}):
        with pytest.raises(InvalidInput, match="RunState"):
            run(hand_over(wrong))


def test_the_command(run, sandbox, tmp_path, capsys):
    owner = get_user_model().objects.create_user("ann")
    the_agent = agent(1)
    state, conversation_id = run(stuck(sandbox, the_agent, ("lost_after", 0)))
    given, out = tmp_path / "state.json", tmp_path / "resumable.json"
    given.write_text(state.to_string())

    call_command("hand_over_run", str(given), "--out", str(out), "--owner", "ann", "--json")

    told = json.loads(capsys.readouterr().out)
    assert told == {"may_resume": True, "write": {"id": str(WriteIntent.objects.get().pk), "state": "saved"}}
    assert ConversationSession.objects.get().owner == owner

    async def resumed():
        resumable = await RunState.from_string(the_agent, out.read_text())
        session = DjangoConversationsSession(conversation_id=conversation_id)
        return await Runner.run(the_agent, resumable, session=session)

    assert run(resumed()).final_output == "Done."
    assert kinds(sandbox, conversation_id) == whole(1)


def test_the_command_says_what_it_waits_for(run, sandbox, tmp_path):
    state, conversation_id = run(stuck(sandbox, agent(1), ("lost_after", 0)))
    output = sandbox.items(conversation_id)[-1]
    sandbox.append_foreign(conversation_id, [{name: output[name] for name in ("type", "call_id", "output")}])
    given, out = tmp_path / "state.json", tmp_path / "resumable.json"
    given.write_text(state.to_string())

    with pytest.raises(CommandError, match="is ambiguous"):
        call_command("hand_over_run", str(given), "--out", str(out))
    with pytest.raises(CommandError, match="no user"):
        call_command("hand_over_run", str(given), "--out", str(out), "--owner", "nobody")

    assert not out.exists()


async def stuck_and_written_since(sandbox, fault):
    """Somebody went on with the conversation through a session of ours before the write was taken over."""
    state, conversation_id = await stuck(sandbox, agent(21), fault)
    row = await operations.acreate_session(conversation_id=conversation_id)
    await operations.aappend_items(row.pk, messages(1))
    return conversation_id, await hand_over(state)


def test_a_write_is_found_before_what_was_written_since(run, sandbox):
    conversation_id, handed = run(stuck_and_written_since(sandbox, ("lost_after", 1)))

    assert handed.may_resume
    assert kinds(sandbox, conversation_id) == [*whole(21, said=False), ("message", "")]
    assert not operations.verify_session(handed.write.session_id).missing


def test_what_is_missing_is_not_put_behind_what_was_written_since(run, sandbox):
    conversation_id, handed = run(stuck_and_written_since(sandbox, ("lost_before", 1)))

    assert (handed.may_resume, handed.write.state) == (False, WriteState.AMBIGUOUS)
    assert len(kinds(sandbox, conversation_id)) == 1 + 21 + 20 + 1


def test_the_command_says_which_extra_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "convsessions.agents", None)

    with pytest.raises(CommandError, match=r"install the extra, convsessions\[agents\]"):
        call_command("hand_over_run", "state.json", "--out", str(tmp_path / "out.json"))

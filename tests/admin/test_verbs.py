from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry

from convsessions import operations
from convsessions.admin import WriteAdmin
from convsessions.models import Reconciliation, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled, messages, remote_texts

from .conftest import ITEMS, page, said

pytestmark = pytest.mark.django_db(transaction=True)

SENT = [f"m{index}" for index in range(ITEMS)]


def act(browser, write, verb, reason="mended"):
    return browser.post(page(verb, write.pk), {"reason": reason}, follow=True)


# -- one write ---------------------------------------------------------------------------------------------------


def test_a_held_write_is_tried_again_at_once(browser, held, session, sandbox):
    assert "the API key was rejected" in browser.get(page("retry", held.pk)).content.decode()

    act(browser, held, "retry")

    assert deliver_until_settled(held).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == SENT
    assert LogEntry.objects.get().change_message == "Retry now: mended"


def test_a_held_write_is_cancelled(browser, held, session, sandbox):
    assert "0 of its 7 items are saved" in browser.get(page("cancel", held.pk)).content.decode()

    act(browser, held, "cancel")

    assert deliver_until_settled(held).state == WriteState.CANCELLED
    assert remote_texts(sandbox, session) == []


def test_an_ambiguous_write_is_checked_again(browser, duplicated):
    act(browser, duplicated, "reconcile", reason="the other copy is gone")

    assert operations.get_write(duplicated.pk).state == WriteState.SENDING
    assert Reconciliation.objects.latest("pk").reason == "the other copy is gone"
    assert LogEntry.objects.get().object_id == str(duplicated.pk)


@pytest.mark.parametrize("verb", ["retry", "cancel"])
def test_an_act_is_kept_with_its_operator_and_its_reason_in_the_journal_and_in_the_log(browser, held, verb):
    act(browser, held, verb, reason="paid the bill")

    kept, entry = Reconciliation.objects.get(), LogEntry.objects.get()
    assert (kept.write, kept.evidence, kept.reason, kept.verdict) == (held, {"act": verb}, "paid the bill", "")
    assert kept.actor_id == entry.user_id == int(browser.session["_auth_user_id"])
    shown = browser.get(page("change", held.pk)).content.decode()
    assert "<blockquote>paid the bill</blockquote>" in shown
    assert {"retry": "Operator: try again", "cancel": "Operator: cancel"}[verb] in shown


def test_a_refused_write_is_tried_again_behind_what_was_recorded_since(browser, session, sandbox):
    sandbox.fault("error_before", operation="append_items", status=400, code="invalid_value", param="items[0].content")
    refused = deliver_until_settled(append(session, 1))
    later = deliver_until_settled(append(session, 1, prefix="later"))
    assert (refused.state, later.state) == (WriteState.REFUSED, WriteState.SAVED)
    assert "(invalid_value) is sent again, behind everything" in browser.get(page("retry", refused.pk)).content.decode()

    act(browser, refused, "retry")

    assert deliver_until_settled(refused).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["later0", "m0"]


def test_a_refused_write_of_a_session_that_was_cleared_is_not_tried_again(browser, session, sandbox):
    sandbox.fault("error_before", operation="append_items", status=400, code="invalid_value", param="items[0].content")
    refused = deliver_until_settled(append(session, 1))
    deliver_until_settled(operations.clear_session(session.pk))

    answer = act(browser, refused, "retry")

    assert said(answer) == ["Nothing was done: its session was cleared since."]


CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "x"}


def test_what_was_left_out_is_told_and_the_half_that_stays_is_removed(browser, session, sandbox):
    sandbox.fault("error_before", operation="append_items", status=400, code="invalid_value", param="items[1].output")
    write = operations.append_items(session.pk, [CALL, RESULT, *messages(1)], on_refusal="skip")
    write = deliver_until_settled(write)
    (half,) = write.half_pairs

    shown = browser.get(page("change", write.pk)).content.decode()
    assert "Item 1 was refused and left out: <code>invalid_value</code> <code>items[1].output</code>" in shown
    assert "Item 0 (function_call) stands in the conversation without item 1, which belongs to it:" in shown
    asked = browser.get(page("halves", write.pk)).content.decode()
    assert "deletes 1 remote item, of which the other half was not saved." in asked
    assert half["id"] in asked

    act(browser, write, "halves", reason="a model would stumble")

    removal = WriteIntent.objects.get(kind="remove")
    assert deliver_until_settled(removal).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["m0"]
    assert Reconciliation.objects.latest("pk").reason == LogEntry.objects.get().change_message.rpartition(": ")[2]
    assert said(act(browser, write, "halves")) == ["Nothing was done: it left no half of a pair behind."]


@pytest.mark.parametrize("verb", ["retry", "cancel"])
def test_asking_changes_nothing(browser, held, verb):
    before = list(WriteIntent.objects.values())

    assert browser.get(page(verb, held.pk)).status_code == 200
    assert "This field is required." in browser.post(page(verb, held.pk), {"reason": " "}).content.decode()

    assert list(WriteIntent.objects.values()) == before
    assert LogEntry.objects.count() == 0


@pytest.mark.parametrize("verb", ["retry", "cancel"])
def test_the_second_of_two_clicks_does_nothing(browser, held, verb):
    act(browser, held, verb)
    before = list(WriteIntent.objects.values())

    answer = act(browser, held, verb)

    assert said(answer)[-1].startswith("Nothing was done: ")
    assert list(WriteIntent.objects.values()) == before
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize(("verb", "why"), [("retry", "waits for nothing"), ("cancel", "resolve it")])
def test_an_ambiguous_write_is_neither_retried_nor_cancelled(browser, duplicated, verb, why):
    answer = act(browser, duplicated, verb)

    assert why in said(answer)[-1]
    assert operations.get_write(duplicated.pk).state == WriteState.AMBIGUOUS


def test_a_write_that_moved_on_between_the_look_and_the_lock_is_left_alone(browser, held, monkeypatch):
    """The state that was read for the page is old by the time of the act: the journal's own check decides."""
    operations.cancel_write(held.pk)
    deliver_until_settled(held)
    monkeypatch.setattr(WriteAdmin, "find", lambda self, request, object_id: held)

    answer = act(browser, held, "cancel")

    assert said(answer)[-1].startswith("Nothing was done: write ")
    assert LogEntry.objects.count() == 0

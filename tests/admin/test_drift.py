from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from convsessions.models import Reconciliation, RequestAttempt, WriteChunk, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled, messages, remote_texts

from .conftest import ALL, page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def address(session):
    return page("verify", session.pk, model="conversationsession")


@pytest.fixture
def saved(sandbox, session):
    write = deliver_until_settled(append(session, 7))
    session.refresh_from_db()
    return write


def test_a_history_that_is_as_recorded_is_said_to_be_so(browser, saved, address):
    shown = browser.get(address).content.decode()

    assert "Everything that was recorded as saved is in the remote history, unaltered and in order." in shown
    assert "7 items read" in shown


def test_what_is_missing_and_what_is_foreign_is_listed_with_its_write(browser, saved, session, sandbox, address):
    ids = [one for chunk in saved.chunks.order_by("first_item") for one in chunk.remote_ids]
    sandbox_client(sandbox).conversations.items.delete(ids[4], conversation_id=session.conversation_id)
    (foreign,) = sandbox.append_foreign(session.conversation_id, messages(1, prefix="x"))

    shown = browser.get(address).content.decode()

    assert "The remote history is not what the journal recorded as saved." in shown
    missing = shown[shown.index("Missing: 1") : shown.index("Foreign: 1")]
    assert f"<code>{ids[4]}</code>" in missing
    assert f'<a href="{page("change", saved.pk)}">item 4 of write 1</a>' in missing
    assert f"<li><code>{foreign['id']}</code></li>" in shown[shown.index("Foreign: 1") :]


def test_foreign_items_alone_are_no_difference(browser, saved, session, sandbox, address):
    sandbox.append_foreign(session.conversation_id, messages(1, prefix="x"))

    shown = browser.get(address).content.decode()

    assert "Everything that was recorded as saved" in shown
    assert "Foreign: 1" in shown


def test_comparing_changes_neither_the_journal_nor_the_remote(browser, saved, session, sandbox, address):
    ids = saved.chunks.first().remote_ids
    sandbox_client(sandbox).conversations.items.delete(ids[0], conversation_id=session.conversation_id)
    rows = (WriteIntent, WriteChunk, Reconciliation, RequestAttempt)
    before = [list(model.objects.order_by("pk").values()) for model in rows], remote_texts(sandbox, session)

    browser.get(address)
    browser.post(address)

    after = [list(model.objects.order_by("pk").values()) for model in rows], remote_texts(sandbox, session)
    assert after == before
    assert [row["method"] for row in sandbox.requests(session.conversation_id)][-1] == "GET"


def test_a_history_that_cannot_be_read_is_said_to_be_so(browser, saved, sandbox, address):
    sandbox.fault("read_error", operation="list_items", times=None)

    assert "The remote history could not be read just now" in browser.get(address).content.decode()


def test_a_session_without_a_conversation_has_nothing_to_compare(browser, address):
    assert "there is nothing to compare" in browser.get(address).content.decode()


@pytest.mark.parametrize("missing", ["view_conversationsession", "reconcile_writeintent"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_comparing_is_refused_without_a_permission_that_it_needs(operator, saved, address, missing, method):
    assert getattr(operator(*(set(ALL) - {missing})), method)(address).status_code == 403


def test_the_button_is_there_for_those_who_may_use_it_only(operator, session, address):
    of_session = page("change", session.pk, model="conversationsession")

    assert address in operator(*ALL).get(of_session).content.decode()
    assert address not in operator("view_conversationsession").get(of_session).content.decode()


def test_comparing_costs_as_many_queries_for_three_writes_as_for_one(browser, saved, session, address):
    browser.get(address)
    for number in (1, 2):
        for _number in range(number):
            deliver_until_settled(append(session, 4))
        with CaptureQueriesContext(connection) as captured:
            browser.get(address)
        assert len(captured) == 9, [query["sql"] for query in captured]


def test_comparing_is_not_done_inside_a_transaction_under_atomic_requests(browser, saved, address, monkeypatch):
    from django.db import connections

    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)

    assert browser.get(address).status_code == 200
    assert saved.state == WriteState.SAVED


def sandbox_client(sandbox):
    from openai import OpenAI

    return OpenAI(base_url=sandbox.base_url, api_key="sk-test", max_retries=0)

"""The action of the list: a selection of writes is checked again, and followed."""

from __future__ import annotations

import re
import uuid

import pytest
from django.contrib.admin.models import LogEntry

from convsessions import operations
from convsessions.admin import actions, batches
from convsessions.models import Reconciliation
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled

from .conftest import ALL, ambiguous, page

pytestmark = pytest.mark.django_db(transaction=True)

OVERHEAD, EACH = 14, 17
"""Queries of a request that carries an action out: all in all, and for each write."""


def select(browser, *writes, confirmed=True, **more):
    data = {"action": "reconcile_selected", "_selected_action": [str(write.pk) for write in writes], "index": "0"}
    if confirmed:
        del data["index"]
        data |= {"confirmed": "yes", "reason": "once more"}
    return browser.post(page("changelist"), data | more, follow=True)


def test_a_selection_is_shown_with_what_will_be_skipped_before_anything_is_done(browser, duplicated, session):
    other = append(operations.create_session(), 1)

    shown = select(browser, duplicated, other, confirmed=False).content.decode()

    assert "1 write will be checked" in shown
    assert "1 write will be skipped" in shown
    assert "it is pending, and only an ambiguous write is checked again." in shown
    assert operations.get_write(duplicated.pk).state == WriteState.AMBIGUOUS


def test_a_confirmed_selection_is_followed_until_every_write_is_decided(browser, duplicated, session):
    other = append(operations.create_session(key="other"), 1)

    answer = select(browser, duplicated, other)

    address = answer.redirect_chain[0][0]
    assert results_in(answer) == {
        duplicated.pk: "waits for a worker",
        other.pk: "skipped: it is pending, and only an ambiguous write is checked again.",
    }
    assert "0 of 1 write is decided. 1 was skipped." in answer.content.decode()
    assert 'data-follow="2000"' in answer.content.decode()
    assert '<meta http-equiv="refresh" content="3">' in answer.content.decode()
    assert operations.get_write(duplicated.pk).state == WriteState.SENDING
    assert operations.get_write(other.pk).state == WriteState.PENDING

    assert deliver_until_settled(duplicated).state == WriteState.AMBIGUOUS

    answer = browser.get(address)
    assert results_in(answer)[duplicated.pk] == "duplicated: stored more than once duplicated: stored more than once"
    assert "1 of 1 write is decided." in answer.content.decode()
    assert "data-follow" not in answer.content.decode()
    assert "http-equiv" not in answer.content.decode()


def test_a_batch_is_seen_by_the_browser_that_submitted_it_only(browser, operator, duplicated):
    address = select(browser, duplicated).redirect_chain[0][0]

    assert operator(*ALL).get(address).status_code == 404
    assert browser.get(page("batch", "nonsense")).status_code == 404


def test_a_batch_is_not_followed_for_ever(browser, duplicated, monkeypatch):
    monkeypatch.setattr(batches, "FOLLOWED_SECONDS", 0)

    shown = select(browser, duplicated).content.decode()

    assert "Nothing has happened for a long time: is a worker running?" in shown
    assert "data-follow" not in shown


def test_the_newest_batches_are_kept(browser, duplicated):
    addresses = [select(browser, duplicated).redirect_chain[0][0] for _number in range(batches.MOST_KEPT + 1)]

    assert [browser.get(address).status_code for address in addresses] == [404] + [200] * batches.MOST_KEPT


def results_in(response):
    """What the page says of each write."""
    rows = re.findall(
        r'<tr><th scope="row"><a href="[^"]*/([0-9a-f-]{36})/change/">.*?</tr>', response.content.decode()
    )
    cells = re.findall(r"<td>((?:(?!<td>).)*)</td></tr>", response.content.decode())
    texts = [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]
    return {uuid.UUID(pk): text for pk, text in zip(rows, texts, strict=True)}


def test_a_selection_confirmed_twice_is_carried_out_once(browser, duplicated):
    select(browser, duplicated)
    answer = select(browser, duplicated)

    assert results_in(answer) == {
        duplicated.pk: "skipped: it is sending, and only an ambiguous write is checked again."
    }
    assert Reconciliation.objects.filter(resolution="recheck").count() == 1
    assert LogEntry.objects.count() == 1


def test_a_selection_needs_a_reason(browser, duplicated):
    answer = select(browser, duplicated, reason="")

    assert "This field is required." in answer.content.decode()
    assert operations.get_write(duplicated.pk).state == WriteState.AMBIGUOUS


def test_a_selection_has_a_limit(browser, duplicated, monkeypatch):
    monkeypatch.setattr(actions, "MOST_SELECTED", 0)

    answer = select(browser, duplicated)

    assert "Select at most 0 writes at a time." in answer.content.decode()
    assert operations.get_write(duplicated.pk).state == WriteState.AMBIGUOUS


# -- cost --------------------------------------------------------------------------------------------------------


@pytest.fixture
def several(sandbox):
    """`several(3)`: so many ambiguous writes, each of a session of its own."""

    def make(number):
        sandbox.fault("rewritten", operation="append_items", times=number)
        return [ambiguous(append(operations.create_session(), 1)) for _number in range(number)]

    return make


def test_asking_costs_the_same_for_one_write_and_for_three(browser, several, django_assert_num_queries):
    for number in (1, 3):
        writes = several(number)
        with django_assert_num_queries(10):
            select(browser, *writes, confirmed=False)


def test_carrying_out_costs_the_same_for_each_write(browser, several, django_assert_num_queries):
    select(browser, *several(1))
    for number in (1, 3):
        writes = several(number)
        data = {"action": "reconcile_selected", "_selected_action": [str(write.pk) for write in writes]}
        with django_assert_num_queries(OVERHEAD + number * EACH):
            browser.post(page("changelist"), data | {"confirmed": "yes", "reason": "once more"})


def test_following_costs_the_same_for_one_write_and_for_three(browser, several, django_assert_num_queries):
    for number in (1, 3):
        address = select(browser, *several(number)).redirect_chain[0][0]
        with django_assert_num_queries(6):
            browser.get(address)

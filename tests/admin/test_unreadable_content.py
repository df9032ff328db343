"""What operators see of content that the site's keys cannot decrypt: words, and what to do; no crash."""

from __future__ import annotations

import re

import pytest

from convsessions import operations
from convsessions.models import WriteIntent
from tests.histories import append

from .conftest import ALL, choices_in, page, said

pytestmark = pytest.mark.django_db(transaction=True)

PUT_BACK = "Put the right one back into CIPHER_KEYS."


@pytest.fixture(autouse=True)
def lose(keys):
    """Take the key away for another."""
    return keys.lose


@pytest.fixture
def held(sandbox, session, lose):
    write = append(session, 7)
    lose()
    operations.deliver(session.pk)
    return write


def text_of(response):
    assert response.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_a_held_write_is_listed_counted_and_explained(browser, held):
    assert "its content in the journal cannot be decrypted" in text_of(browser.get(page("changelist")))
    listed = browser.get(page("changelist"), {"attention": "yes", "held": "content_unreadable"})
    assert list(listed.context["cl"].result_list) == [held]
    shown = text_of(browser.get(page("change", held.pk)))
    assert "Put the key back into CIPHER_KEYS, where the workers run, then Retry now." in shown
    overview = text_of(browser.get(page("overview")))
    assert "0 ambiguous, 1 held 1 its content in the journal cannot be decrypted Put the key back" in overview
    assert "held" in text_of(browser.get(page("change", held.session_id, model="conversationsession")))


def test_retry_now_puts_it_on_its_way(browser, held, quick):
    browser.post(page("retry", held.pk), {"reason": "the key is back"}, follow=True)
    assert WriteIntent.objects.get(pk=held.pk).hold_code == ""


def test_its_content_is_told_to_be_unreadable(browser, held):
    assert PUT_BACK in text_of(browser.get(page("content", held.pk)))


def test_so_is_what_a_pop_removed(browser, sandbox, session, lose):
    append(session, 1)
    pop = operations.pop_item(session.pk)
    operations.deliver(session.pk)
    lose()
    assert PUT_BACK in text_of(browser.get(page("content", pop.pk)))
    assert "pop" in text_of(browser.get(page("change", pop.pk)))


def test_an_ambiguous_write_can_be_left_or_looked_at_later_and_nothing_else(browser, duplicated, lose):
    lose()
    shown = browser.get(page("resolve", duplicated.pk))
    assert PUT_BACK in text_of(shown)
    assert choices_in(shown) == ["recheck", "abandon"]

    fields = {"reason": "so", "confirmed": "on", "evidence": ""}
    refused = browser.post(page("resolve", duplicated.pk), {**fields, "resolution": "accept"})
    assert "Nothing was done" in text_of(refused)
    assert WriteIntent.objects.get(pk=duplicated.pk).state == "ambiguous"

    done = browser.post(page("resolve", duplicated.pk), {**fields, "resolution": "abandon"}, follow=True)
    assert said(done) == ["Recorded: abandon: leave the remote as it is, cancel the rest."]
    assert WriteIntent.objects.get(pk=duplicated.pk).state == "cancelled"
    assert "The content in the journal could not be decrypted." in text_of(browser.get(page("change", duplicated.pk)))


def test_a_session_that_cannot_be_compared_says_why(browser, sandbox, session, lose):
    append(session, 2)
    operations.deliver(session.pk)
    lose()
    assert PUT_BACK in text_of(browser.get(page("verify", session.pk, model="conversationsession")))


def test_who_may_not_see_content_is_told_no_more(operator, held):
    assert operator(*ALL[:-1]).get(page("content", held.pk)).status_code == 403

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import path, reverse

from convsessions import operations
from convsessions.admin import SessionAdmin, WriteAdmin
from convsessions.models import ConversationSession, Reconciliation, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled

from .conftest import lose_second_chunk, page

pytestmark = pytest.mark.django_db(transaction=True)

NASTY = "<script>alert('x')</script> \"quoted\" & 'so'"
ESCAPED = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &quot;quoted&quot; &amp; &#x27;so&#x27;"

house = admin.AdminSite(name="house")
house.register(ConversationSession, SessionAdmin)
house.register(WriteIntent, WriteAdmin)
lonely = admin.AdminSite(name="lonely")
lonely.register(WriteIntent, WriteAdmin)
urlpatterns = [path("house/", house.urls), path("lonely/", lonely.urls), path("admin/", admin.site.urls)]


def text_of(response):
    return response.content.decode()


@pytest.fixture
def nasty(sandbox):
    """An ambiguous write whose texts, key and ids try to be markup."""
    session = operations.create_session(key=NASTY)
    sandbox.fault("rewritten", operation="append_items")
    write = operations.append_items(session.pk, [{"role": "user", "content": NASTY}], idempotency_key=NASTY)
    operations.deliver(session.pk)
    write.refresh_from_db()
    assert write.state == WriteState.AMBIGUOUS
    return write


def every_page(write):
    return [
        page("changelist"),
        page("overview"),
        page("change", write.pk),
        page("content", write.pk),
        page("content", write.pk) + "?item=0",
        page("resolve", write.pk),
        page("reconcile", write.pk),
        page("history", write.pk),
        page("changelist", model="conversationsession"),
        page("change", write.session_id, model="conversationsession"),
        page("verify", write.session_id, model="conversationsession"),
    ]


# -- one write, as told on its page ------------------------------------------------------------------------------


def test_the_page_of_a_write_tells_its_story(browser, duplicated):
    shown = text_of(browser.get(page("change", duplicated.pk)))

    story = ["Recorded", "Create conversation", "items 0 to 2", "items 3 to 5", "unknown", "Compared with"]
    timeline = shown[shown.index("What happened") : shown.index("Facts")]
    assert sorted(story, key=timeline.index) == story
    for request in duplicated.requests.exclude(request_id=""):
        assert request.request_id in timeline
    assert "An extra copy in full: 3 items." in timeline
    assert "3 chunks: 1 saved, 1 ambiguous, 1 pending" in shown


def test_support_is_told_ids_and_times_and_no_content(operator, duplicated, session):
    shown = text_of(operator("view_writeintent").get(page("change", duplicated.pk)))
    (told,) = re.findall(r'(?s)<textarea id="cs-support"[^>]*readonly[^>]*>(.*?)</textarea>', shown)

    for one in (duplicated.pk, session.pk, session.conversation_id):
        assert f": {one}" in told
    for request in duplicated.requests.all():
        assert (request.request_id or "no request id") in told
    assert "| append_items | items 3-5 | unknown |" in told
    assert re.search(r"\| duplicated \| 6 items read \| run (msg_\S+ ?){3}\| run (msg_\S+ ?){3}$", told)
    assert not re.search(r"\bm[0-6]\b", told)


def test_an_operator_is_told_the_cause_of_a_hold(browser, held):
    shown = text_of(browser.get(page("change", held.pk)))

    assert "It waits: the API key was rejected." in shown
    assert "It ends only when a person mends the cause." in shown


def test_chunks_without_a_story_share_a_row(browser, session, sandbox):
    write = append(session, 30)
    deliver_until_settled(write)

    shown = text_of(browser.get(page("change", write.pk)))

    assert re.findall(r'<th scope="row">(.*?)</th><td>(items.*?)</td>', shown) == [("1\u201310", "items 0 to 29")]


def test_a_write_that_does_not_exist_is_not_found(browser):
    unknown = "00000000-0000-0000-0000-000000000000"

    for name in ("change", "resolve", "content", "cancel"):
        assert browser.get(page(name, unknown)).status_code == 404
        assert browser.get(page(name, "nonsense")).status_code == 404


# -- content -----------------------------------------------------------------------------------------------------


def test_content_is_shown_as_text_wherever_it_is_shown(browser, nasty):
    for address in every_page(nasty):
        shown = text_of(browser.get(address))
        assert "<script>alert" not in shown, address
    assert ESCAPED in text_of(browser.get(page("content", nasty.pk)))
    assert ESCAPED in text_of(browser.get(page("resolve", nasty.pk)))


def test_content_is_nowhere_without_the_permission_to_see_it(operator, duplicated):
    browser = operator("view_writeintent", "view_conversationsession", "resolve_writeintent", "reconcile_writeintent")

    for address in every_page(duplicated):
        assert not re.search(r"\bm[345]\b", text_of(browser.get(address))), address


def test_long_content_is_cut_and_shown_whole_on_demand(browser, session):
    write = operations.append_items(session.pk, [{"role": "user", "content": "x" * 2500}])

    shown = text_of(browser.get(page("content", write.pk)))
    whole = text_of(browser.get(page("content", write.pk) + "?item=0"))

    assert "x" * 2000 + "…" in shown
    assert "x" * 2001 not in shown
    assert "x" * 2500 in whole


def test_content_is_paged_by_chunk(browser, session):
    write = append(session, 7)

    shown = text_of(browser.get(page("content", write.pk) + "?chunk=3"))

    assert re.findall(r"m\d", "".join(re.findall(r"<pre[^>]*>(.*?)</pre>", shown))) == ["m3", "m4", "m5"]
    assert 'rel="prev" href="?chunk=0"' in shown
    assert 'rel="next" href="?chunk=6"' in shown


def test_a_popped_item_is_content(browser, session, sandbox):
    deliver_until_settled(append(session, 1))
    write = deliver_until_settled(operations.pop_item(session.pk))

    assert "<pre" in text_of(browser.get(page("content", write.pk)))
    assert "m0" in text_of(browser.get(page("content", write.pk)))
    clear = operations.clear_session(session.pk)
    assert "There is no content." in text_of(browser.get(page("content", clear.pk)))


# -- cost, safety, sites -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "queries"), [("change", 13), ("resolve", 19), ("content", 8), ("reconcile", 6)])
def test_pages_cost_as_many_queries_after_a_long_story_as_after_a_short_one(
    browser, duplicated, session, django_user_model, name, queries
):
    address = page(name, duplicated.pk)
    browser.get(address)
    for number in (1, 3):
        for index in range(number):
            append(session, 9)
            actor = django_user_model.objects.create_user(f"actor-{number}-{index}")
            chunk = duplicated.chunks.get(state=WriteState.AMBIGUOUS)
            Reconciliation.objects.create(write=duplicated, chunk=chunk, verdict="duplicated", actor=actor, reason="so")
        with CaptureQueriesContext(connection) as captured:
            browser.get(address)
        assert len(captured) == queries, [query["sql"] for query in captured]


def test_the_page_of_a_session_costs_as_many_queries_for_three_writes_as_for_one(browser, session):
    address = page("change", session.pk, model="conversationsession")
    browser.get(address)
    for number in (1, 2):
        for _number in range(number):
            append(session, 9)
        with CaptureQueriesContext(connection) as captured:
            browser.get(address)
        assert len(captured) == 7, [query["sql"] for query in captured]


def test_a_strict_content_security_policy_holds(browser, nasty):
    """No inline script, style or handler on any page: `default-src 'self'` blocks nothing of ours."""
    for address in every_page(nasty):
        shown = text_of(browser.get(address))
        assert re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", shown) == [], address
        assert re.findall(r"<style\b|\sstyle=|\son[a-z]+=\"|javascript:", shown) == [], address


def test_every_field_has_a_label_and_every_page_one_heading(browser, nasty):
    for address in every_page(nasty):
        shown = text_of(browser.get(address))
        assert len(re.findall(r"<h1\b", re.sub(r'(?s)<div id="site-name">.*?</div>', "", shown))) <= 1, address
    shown = text_of(browser.get(page("resolve", nasty.pk)))
    form = shown[shown.index('class="cs-card" novalidate') :]
    ids = re.findall(r'<(?:input|textarea)(?![^>]*type="hidden")[^>]*\bid="([^"]+)"', form)
    assert [one for one in ids if f'<label for="{one}"' not in form] == []
    assert len(ids) == len(re.findall(r'<(?:input|textarea)(?![^>]*type="hidden")', form))


@pytest.mark.urls(__name__)
def test_the_pages_work_on_a_site_of_ones_own(admin_client, sandbox, session):
    write = lose_second_chunk(sandbox, session, "lost_before")
    sandbox.append_foreign(session.conversation_id, [{"role": "user", "content": "m3"}])
    operations.deliver(session.pk)

    for name in ("change", "resolve", "reconcile", "content"):
        address = reverse(f"house:convsessions_writeintent_{name}", args=[write.pk])
        shown = text_of(admin_client.get(address))
        assert "/house/" in shown
        assert '"/admin/' not in shown, name
    done = admin_client.post(reverse("house:convsessions_writeintent_reconcile", args=[write.pk]), {"reason": "x"})
    assert done["Location"] == reverse("house:convsessions_writeintent_change", args=[write.pk])


@pytest.mark.urls(__name__)
def test_the_writes_work_on_a_site_without_the_sessions(admin_client, sandbox, session):
    write = append(session, 1)

    assert admin_client.get(reverse("lonely:convsessions_writeintent_changelist")).status_code == 200
    assert admin_client.get(reverse("lonely:convsessions_writeintent_change", args=[write.pk])).status_code == 200

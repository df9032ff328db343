"""Every verb without every permission that it needs: the server refuses, whatever buttons there are."""

from __future__ import annotations

import pytest

from convsessions.models import WriteIntent
from convsessions.states import WriteState

from .conftest import ALL, page

pytestmark = pytest.mark.django_db(transaction=True)

NEEDED = {
    "change": {"view_writeintent"},
    "content": {"view_writeintent", "view_payload"},
    "resolve": {"view_writeintent", "resolve_writeintent"},
    "reconcile": {"view_writeintent", "reconcile_writeintent"},
    "retry": {"view_writeintent", "reconcile_writeintent"},
    "cancel": {"view_writeintent", "cancel_writeintent"},
    "halves": {"view_writeintent", "resolve_writeintent"},
}
CASES = [(name, missing) for name, needed in NEEDED.items() for missing in sorted(needed)]


@pytest.mark.parametrize(("name", "missing"), CASES)
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_page_is_refused_without_a_permission_that_it_needs(operator, duplicated, name, missing, method):
    browser = operator(*(set(ALL) - {missing}))
    before = WriteIntent.objects.values().get()

    answer = getattr(browser, method)(
        page(name, duplicated.pk), {"reason": "x", "resolution": "abandon", "confirmed": "on"}
    )

    assert answer.status_code == 403
    assert WriteIntent.objects.values().get() == before


@pytest.mark.parametrize("name", NEEDED)
def test_a_page_is_given_to_whoever_holds_what_it_needs(operator, duplicated, name):
    answer = operator(*NEEDED[name]).get(page(name, duplicated.pk))

    assert answer.status_code in {200, 302}


def test_the_action_is_refused_without_its_permission(operator, duplicated):
    browser = operator(*(set(ALL) - {"reconcile_writeintent"}))
    data = {"action": "reconcile_selected", "_selected_action": [str(duplicated.pk)], "confirmed": "yes", "reason": "x"}

    browser.post(page("changelist"), data)

    assert WriteIntent.objects.get().state == WriteState.AMBIGUOUS


@pytest.mark.parametrize("missing", ["view_writeintent", "reconcile_writeintent"])
def test_a_batch_is_not_shown_without_a_permission_that_it_needs(operator, duplicated, missing):
    assert operator(*(set(ALL) - {missing})).get(page("batch", "any")).status_code == 403


def test_the_lists_need_the_permission_to_view(operator, duplicated):
    assert operator("view_writeintent").get(page("changelist")).status_code == 200
    assert operator("view_conversationsession").get(page("changelist")).status_code == 403
    assert operator("view_conversationsession").get(page("changelist", model="conversationsession")).status_code == 200
    assert operator("view_payload").get(page("changelist", model="conversationsession")).status_code == 403


@pytest.mark.parametrize("name", ["add", "delete", "change"])
@pytest.mark.parametrize("model", ["writeintent", "conversationsession"])
def test_nobody_edits_the_journal_by_hand(admin_client, duplicated, session, name, model):
    row = session if model == "conversationsession" else duplicated
    address = page(name, *([] if name == "add" else [row.pk]), model=model)

    assert admin_client.post(address, {"state": "saved", "post": "yes"}).status_code in {403, 405}


def test_buttons_are_there_for_those_who_may_use_them_only(operator, duplicated):
    address = page("change", duplicated.pk)
    verbs = [page(name, duplicated.pk) for name in ("resolve", "reconcile", "content")]

    everything = operator(*ALL).get(address).content.decode()
    nothing = operator("view_writeintent").get(address).content.decode()
    listed = operator("view_writeintent", "reconcile_writeintent").get(page("changelist")).content.decode()

    assert [verb for verb in verbs if f'href="{verb}"' in everything] == verbs
    assert [verb for verb in verbs if f'href="{verb}"' in nothing] == []
    assert verbs[0] not in listed


def test_a_session_shows_writes_to_those_who_may_view_them_only(operator, duplicated, session):
    address = page("change", session.pk, model="conversationsession")

    assert page("change", duplicated.pk) in operator(*ALL).get(address).content.decode()
    assert str(duplicated.pk) not in operator("view_conversationsession").get(address).content.decode()


def test_strangers_are_sent_to_the_login(client, duplicated):
    answer = client.get(page("resolve", duplicated.pk))

    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login/")

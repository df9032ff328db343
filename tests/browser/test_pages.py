from __future__ import annotations

import pytest
from django.test import Client

from convsessions import operations
from convsessions.models import WriteIntent
from convsessions.states import WriteState
from tests.admin.conftest import ALL, page
from tests.histories import append, deliver_until_settled

from .policy import POLICY

pytestmark = pytest.mark.django_db(transaction=True)

NASTY = '<script>window.pwned = 1</script><img src=x onerror="window.pwned = 2"> "quoted" & \'so\''


@pytest.fixture
def nasty(sandbox):
    """An ambiguous write whose texts and key try to be markup, with no blank to break a line at."""
    session = operations.create_session(key=NASTY + "x" * 150)
    sandbox.fault("rewritten", operation="append_items")
    items = [{"role": "user", "content": NASTY}, {"role": "user", "content": "y" * 400}]
    write = operations.append_items(session.pk, items, idempotency_key=NASTY)
    operations.deliver(session.pk)
    write.refresh_from_db()
    assert write.state == WriteState.AMBIGUOUS
    return write


WIDEST = """return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1
    && !e.closest('.cs-wide, .results')).slice(0, 5).map(e => e.outerHTML.slice(0, 120))"""
"""What sticks out, for whoever reads why it failed."""


def every_page(write: WriteIntent) -> dict[str, str]:
    return {
        "list": page("changelist"),
        "overview": page("overview"),
        "write": page("change", write.pk),
        "content": page("content", write.pk),
        "item": page("content", write.pk) + "?item=0",
        "resolve": page("resolve", write.pk),
        "reconcile": page("reconcile", write.pk),
        "log": page("history", write.pk),
        "sessions": page("changelist", model="conversationsession"),
        "session": page("change", write.session_id, model="conversationsession"),
        "drift": page("verify", write.session_id, model="conversationsession"),
    }


def test_content_is_text_on_every_page_under_a_strict_policy(screen, nasty, server, browser):
    """A violation of the policy is a message of the browser, and each of those fails the test."""
    assert Client().get("/admin/login/").headers.get("Content-Security-Policy") is None  # the server's own, not ours
    for name, address in every_page(nasty).items():
        screen.open(address)
        assert screen.driver.execute_script("return window.pwned") is None, name
        policy = "const answer = await fetch(location.href); return answer.headers.get('Content-Security-Policy')"
        assert screen.driver.execute_script(f"return (async () => {{ {policy} }})()") == POLICY, name
    screen.open(page("content", nasty.pk))
    assert screen.one("pre").text == NASTY
    screen.open(page("resolve", nasty.pk))
    assert NASTY in screen.one(".cs-aligned").text


def test_a_policy_is_in_force_at_all(screen, nasty):
    screen.open(page("change", nasty.pk))
    screen.driver.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 3'; document.body.append(s)"
    )

    assert screen.driver.execute_script("return window.pwned") is None
    (complaint,) = screen.driver.get_log("browser")
    assert "Content Security Policy" in complaint["message"]


def test_no_page_scrolls_sideways_on_a_phone(screen, nasty):
    screen.width(360)
    for name, address in every_page(nasty).items():
        screen.open(address)
        assert screen.overflow() == 0, (name, screen.driver.execute_script(WIDEST))


def test_an_operator_without_the_permission_sees_no_button_and_is_refused(screen_of, operator, duplicated):
    screen = screen_of(operator(*(set(ALL) - {"resolve_writeintent"})))
    for address in (page("changelist"), page("change", duplicated.pk)):
        screen.open(address)
        assert screen.all(f'a[href="{page("resolve", duplicated.pk)}"]') == []

    screen.open(page("resolve", duplicated.pk))

    assert "403 Forbidden" in screen.text


def test_a_batch_is_followed_without_loading_the_page_anew(screen, duplicated):
    screen.open(page("changelist"))
    screen.one("input.action-select").click()
    screen.one("select[name=action] option[value=reconcile_selected]").click()
    screen.click("button[name=index]")
    screen.one("#id_reason").send_keys("again, please")
    screen.click("button.cs-primary")
    screen.says("0 of 1 write is decided.")
    screen.driver.execute_script("window.still_the_same_page = true")

    assert deliver_until_settled(duplicated).state == WriteState.AMBIGUOUS

    screen.says("1 of 1 write is decided.")
    screen.says("All is done.")
    assert screen.driver.execute_script("return window.still_the_same_page") is True


def test_details_for_support_are_copied_with_a_button(screen, duplicated):
    screen.open(page("change", duplicated.pk))
    screen.one("details.cs-more summary").click()
    button = screen.one("button[data-copy]")

    button.click()

    screen.until(lambda: button.text == "Copied")
    selected = "const t = document.getElementById('cs-support'); return t.value.slice(t.selectionStart, t.selectionEnd)"
    assert str(duplicated.pk) in screen.driver.execute_script(selected)


def test_a_held_write_is_tried_again_from_the_list(screen, held, session, sandbox):
    screen.open(page("changelist") + "?held=bad_key")
    screen.click(".field-name a")
    screen.click_text("Retry now")
    screen.one("#id_reason").send_keys("the key is new")
    screen.click("button.cs-primary")

    screen.says("The write is tried again now.")
    screen.says("Operator: try again")
    assert deliver_until_settled(held).state == WriteState.SAVED


def test_a_session_leads_to_its_ambiguous_write(screen, duplicated, session):
    append(session, 1)
    screen.open(page("change", session.pk, model="conversationsession"))

    screen.click_text("Resolve")

    assert screen.path == page("resolve", duplicated.pk)

"""For each way in which a write becomes ambiguous: find it in the list, resolve it, see journal and remote agree."""

from __future__ import annotations

import pytest
from selenium.webdriver import Keys

from convsessions import operations
from convsessions.delivery import settling
from convsessions.models import Reconciliation
from convsessions.states import WriteState
from tests.admin.conftest import ITEMS, ambiguous, page
from tests.histories import append, deliver_until_settled, messages, remote_texts

pytestmark = pytest.mark.django_db(transaction=True)

SENT = [f"m{index}" for index in range(ITEMS)]


@pytest.fixture
def contested(sandbox, session):
    """Three equal items were sent and the reply was lost; a foreign fourth makes two readings possible."""
    same = [{"type": "message", "role": "user", "content": "again"}]
    sandbox.fault("lost_after", operation="append_items")
    write = operations.append_items(session.pk, same * 3)
    operations.deliver(session.pk, budget=0)
    session.refresh_from_db()
    sandbox.append_foreign(session.conversation_id, same)
    return ambiguous(write)


@pytest.fixture
def undecided(sandbox, session, monkeypatch):
    """The reply was lost, and then the history could not be read; now it can."""
    monkeypatch.setattr(settling, "MAX_READ_FAILURES", 1)
    sandbox.fault("lost_after", operation="append_items", skip=1)
    sandbox.fault("read_error", operation="list_items", times=None)
    write = deliver_until_settled(append(session, ITEMS))
    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, "undecided")
    sandbox.clear_faults()
    return write


@pytest.fixture
def absent(sandbox, session, monkeypatch):
    """It never arrives, however often it is sent."""
    monkeypatch.setattr(settling, "MAX_SENDS", 1)
    return lose_all(sandbox, session)


def lose_all(sandbox, session):
    sandbox.fault("lost_before", operation="append_items", times=None)
    write = deliver_until_settled(append(session, ITEMS))
    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, "absent")
    sandbox.clear_faults()
    return write


CASES = [
    ("duplicated", "remove_duplicates", "Stored more than once: items 3 to 5.", WriteState.SAVED, SENT),
    ("partial", "rollback", "Of the 3 items sent", WriteState.CANCELLED, []),
    ("partial", "resend", "Of the 3 items sent", WriteState.SAVED, [*SENT[:3], *SENT[3:5], *SENT[3:]]),
    (
        "altered",
        "accept",
        "in altered form",
        WriteState.SAVED,
        [*SENT[:3], *(f"{m} [altered]" for m in SENT[3:6]), "m6"],
    ),
    ("contested", "accept", "another write could explain it too", WriteState.SAVED, ["again"] * 4),
    ("undecided", "accept", "Stored exactly once by now: items 3 to 5.", WriteState.SAVED, SENT),
    ("absent", "resend", "Nothing was found of items 0 to 2", WriteState.SAVED, SENT),
    ("absent", "abandon", "Nothing was found of items 0 to 2", WriteState.CANCELLED, []),
    ("late", "remove_duplicates", "Stored more than once: item 6.", WriteState.SAVED, SENT),
]


@pytest.mark.parametrize(("found", "resolution", "reason", "state", "remote"), CASES)
def test_an_operator_finds_the_write_resolves_it_and_the_remote_is_as_recorded(
    request, screen, session, sandbox, found, resolution, reason, state, remote
):
    write = request.getfixturevalue(found)
    screen.open(page("changelist"))
    screen.click_text("1 write needs attention")
    screen.click(f'a[aria-label="Resolve write {str(write.pk)[:8]}"]')
    screen.says(reason)

    decide(screen, resolution)

    assert screen.path == page("change", write.pk)
    screen.says("Recorded: ")
    write = deliver_until_settled(write)
    assert (write.state, remote_texts(sandbox, session)) == (state, remote)
    stored = [item["id"] for item in sandbox.items(session.conversation_id)] if session.conversation_id else []
    bound = [one for chunk in write.chunks.filter(state=WriteState.SAVED) for one in chunk.remote_ids]
    assert [one for one in stored if one in bound] == (bound if resolution != "rollback" else [])
    screen.open(page("changelist"))
    screen.says("No write needs attention.")


def decide(screen, resolution, *, submit=None, reason="looked at it"):
    screen.one(f"#id_resolution_{resolution}").click()
    screen.one("#id_reason").send_keys(reason)
    screen.one("#id_confirmed").click()
    (submit or screen.click)("button.cs-primary")


def test_a_double_click_decides_once(screen, duplicated, session, sandbox):
    screen.open(page("resolve", duplicated.pk))

    decide(screen, "remove_duplicates", submit=screen.double_click)

    screen.until(lambda: screen.path == page("change", duplicated.pk))
    assert Reconciliation.objects.exclude(resolution="").count() == 1
    assert deliver_until_settled(duplicated).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == SENT


def test_a_stale_page_shows_what_has_changed_instead_of_acting(screen, duplicated, session, sandbox):
    screen.open(page("resolve", duplicated.pk))
    sandbox.append_foreign(session.conversation_id, messages(1, prefix="meanwhile"))

    decide(screen, "remove_duplicates", reason="typed for nothing?")

    screen.says("The evidence has changed since you looked.")
    assert "meanwhile0" in screen.one(".cs-aligned").text
    assert screen.one("#id_reason").get_attribute("value") == "typed for nothing?"
    assert Reconciliation.objects.exclude(resolution="").count() == 0


def test_going_back_and_deciding_again_does_nothing(screen, duplicated, session, sandbox):
    screen.open(page("resolve", duplicated.pk))
    decide(screen, "remove_duplicates")
    deliver_until_settled(duplicated)
    screen.leave(screen.driver.back)
    if screen.path == page("resolve", duplicated.pk) and screen.all("#id_resolution_accept"):
        decide(screen, "accept")

    screen.until(lambda: screen.path == page("change", duplicated.pk))
    assert Reconciliation.objects.exclude(resolution="").count() == 1
    assert remote_texts(sandbox, session) == SENT


def test_the_keyboard_alone_is_enough(screen, partial, session, sandbox):
    screen.open(page("changelist") + "?attention=yes")
    screen.tab_to("a.cs-button[aria-label^='Resolve']")
    screen.leave(lambda: screen.press(Keys.ENTER))

    screen.tab_to(".cs-tall")  # what scrolls can be reached
    screen.tab_to("#id_resolution_accept")
    screen.press(Keys.ARROW_DOWN)  # resend
    screen.tab_to("#id_reason")
    screen.press("no mouse here")
    screen.tab_to("#id_confirmed")
    screen.press(Keys.SPACE)
    button = screen.tab_to("button.cs-primary")
    assert button.value_of_css_property("outline-style") != "none"
    screen.leave(lambda: screen.press(Keys.ENTER))

    assert screen.path == page("change", partial.pk)
    look = Reconciliation.objects.latest("pk")
    assert (look.resolution, look.reason) == ("resend", "no mouse here")
    assert deliver_until_settled(partial).state == WriteState.SAVED

from __future__ import annotations

import html
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from convsessions import operations
from convsessions.models import Reconciliation, RequestAttempt, WriteChunk, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled, messages, remote_texts

from .conftest import ITEMS, choices_in, page, said, token_in

pytestmark = pytest.mark.django_db(transaction=True)

SENT = [f"m{index}" for index in range(ITEMS)]


def resolve(browser, write, resolution, *, token=None, reason="seen it", **more):
    """Open the page, choose, confirm."""
    address = page("resolve", write.pk)
    token = token_in(browser.get(address)) if token is None else token
    data = {"resolution": resolution, "reason": reason, "confirmed": "on", "evidence": token, **more}
    return browser.post(address, data, follow=True)


def journal() -> list[object]:
    """Everything that an operator could change."""
    rows = (WriteIntent, WriteChunk, Reconciliation, RequestAttempt, LogEntry)
    return [list(model.objects.order_by("pk").values()) for model in rows]


# -- what the page says ------------------------------------------------------------------------------------------


def test_a_duplicated_write_is_explained_with_its_copies_and_the_sensible_choice_first(browser, duplicated, session):
    shown = browser.get(page("resolve", duplicated.pk))

    assert choices_in(shown) == ["remove_duplicates", "accept", "recheck", "rollback", "abandon"]
    ids = [chunk for run in operations.inspect_write(duplicated.pk).evidence["runs"] for chunk in run]
    assert len(ids) == 6
    for remote_id in ids:
        assert f"<code>{remote_id}</code>" in shown.content.decode()
    assert "Stored more than once: items 3 to 5." in shown.content.decode()
    assert "delete 3 remote items. Then chunk 3 (item 6) is sent." in shown.content.decode()


def test_a_partial_write_says_how_much_was_found(browser, partial):
    shown = browser.get(page("resolve", partial.pk))

    assert choices_in(shown) == ["accept", "resend", "recheck", "rollback", "abandon"]
    assert "Of the 3 items sent (items 3 to 5), 2 that look like ours were found" in shown.content.decode()
    assert "Send chunk 2 (items 3 to 5) again" in shown.content.decode()


def test_an_altered_write_shows_what_delivery_saw_as_well(browser, altered):
    shown = browser.get(page("resolve", altered.pk)).content.decode()

    assert "3 items were stored in altered form." in shown
    assert "All of items 3 to 5 are there, but in altered form" in shown


def table_of(response):
    """The cells of the aligned table, as text."""
    body = html.unescape(re.search(r"(?s)<tbody>(.*?)</tbody>", response.content.decode())[1])
    rows = re.findall(r"(?s)<tr class=\"cs-row-(\w+)\">(.*?)</tr>", body)
    return [
        (mark, *(" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in re.findall(r"(?s)<t[hd].*?</t[hd]>", row)))
        for mark, row in rows
    ]


def test_copies_stand_in_the_order_of_the_remote_history_after_the_anchor(browser, duplicated, session, sandbox):
    stored = sandbox.items(session.conversation_id)
    assert len(stored) == 9

    table = table_of(browser.get(page("resolve", duplicated.pk)))

    assert [row[0] for row in table] == ["anchor", "found", "found", "found", "extra", "extra", "extra"]
    assert table[0][3] == f"{stored[2]['id']} this write"
    ids = [f"{item['id'][:8]}\u2026{item['id'][-6:]}" for item in stored[3:]]
    assert [row[3] for row in table[1:]] == [f"{one} m{3 + at % 3}" for at, one in enumerate(ids)]
    assert [row[1] for row in table[1:]] == ["= 3 found", "= 4 found", "= 5 found"] + [
        f"+ extra copy of item {at}" for at in (3, 4, 5)
    ]


def test_missing_and_foreign_items_stand_where_they_belong(browser, partial, session, sandbox):
    sandbox.append_foreign(session.conversation_id, [{"role": "user", "content": "who else?"}])

    table = table_of(browser.get(page("resolve", partial.pk)))

    assert [row[0] for row in table] == ["anchor", "found", "found", "missing", "foreign"]
    assert table[3][1:] == ("\u2013 5 missing", "message \u00b7 user m5", "nothing in its place")
    assert table[4][3].endswith("message \u00b7 user who else?")


def test_altered_content_is_marked_word_by_word_for_those_who_may_see_it(browser, altered, operator):
    shown = browser.get(page("resolve", altered.pk))
    assert [row[0] for row in table_of(shown)] == ["anchor", "altered", "altered", "altered"]
    assert "m3<ins> [altered]</ins>" in shown.content.decode()
    assert "differs at <code>content[0].text</code>" in shown.content.decode()

    others = operator("view_writeintent", "resolve_writeintent").get(page("resolve", altered.pk)).content.decode()
    assert "differs at <code>content[0].text</code>" in others
    assert "m3" not in others
    assert "[altered]" not in others


def test_items_of_other_writes_are_marked_with_their_write(browser, duplicated, session, sandbox):
    """Another write of the session was saved behind the copies: it is neither ours nor foreign."""
    other = WriteIntent.objects.create(
        session=session,
        sequence=99,
        kind="append",
        state="saved",
        generation=0,
        settled_at=timezone.now(),
        items_total=1,
    )
    stored = sandbox.append_foreign(session.conversation_id, messages(1, prefix="other"))
    chunk = {"payload": "[]", "state": "saved", "first_item": 0, "item_count": 1}
    WriteChunk.objects.create(write=other, remote_ids=[stored[0]["id"]], **chunk)

    table = table_of(browser.get(page("resolve", duplicated.pk)))

    assert table[-1][:2] == ("other", "\u00b7 another write's")
    assert "write 99" in table[-1][3]


def test_looking_changes_nothing(browser, duplicated):
    before = journal()

    browser.get(page("resolve", duplicated.pk))
    browser.head(page("resolve", duplicated.pk))

    assert journal() == before


# -- what it does ------------------------------------------------------------------------------------------------


def test_removing_duplicates_leaves_every_item_once_in_order(browser, duplicated, session, sandbox):
    answer = resolve(browser, duplicated, "remove_duplicates")

    assert answer.redirect_chain == [(page("change", duplicated.pk), 302)]
    assert deliver_until_settled(duplicated).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == SENT


def test_accepting_a_duplicate_keeps_the_copy_and_sends_the_rest(browser, duplicated, session, sandbox):
    resolve(browser, duplicated, "accept")

    assert deliver_until_settled(duplicated).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == [*SENT[:6], *SENT[3:6], SENT[6]]


def test_resending_sends_the_chunk_and_the_rest(browser, partial, session, sandbox):
    resolve(browser, partial, "resend")

    assert deliver_until_settled(partial).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == [*SENT[:3], *SENT[3:5], *SENT[3:]]


def test_accepting_a_part_binds_what_was_found(browser, partial, session, sandbox):
    resolve(browser, partial, "accept")

    assert deliver_until_settled(partial).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == [*SENT[:5], SENT[6]]


def test_rolling_back_deletes_all_of_the_write_and_cancels_it(browser, duplicated, session, sandbox):
    resolve(browser, duplicated, "rollback")

    assert deliver_until_settled(duplicated).state == WriteState.CANCELLED
    assert remote_texts(sandbox, session) == []


def test_abandoning_touches_nothing_remote(browser, duplicated, session, sandbox):
    before = remote_texts(sandbox, session)

    resolve(browser, duplicated, "abandon")

    assert deliver_until_settled(duplicated).state == WriteState.CANCELLED
    assert remote_texts(sandbox, session) == before


def test_a_copy_that_landed_late_is_shown_beside_its_chunk_and_removed(browser, late, session, sandbox):
    shown = browser.get(page("resolve", late.pk))
    assert choices_in(shown)[0] == "remove_duplicates"
    assert "Stored more than once: item 6." in shown.content.decode()

    resolve(browser, late, "remove_duplicates")

    assert deliver_until_settled(late).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == SENT


def test_an_act_is_logged_with_its_reason_and_its_operator(browser, duplicated):
    resolve(browser, duplicated, "accept", reason="the proxy did it")

    look = Reconciliation.objects.latest("pk")
    entry = LogEntry.objects.get()
    assert (look.resolution, look.reason) == ("accept", "the proxy did it")
    assert look.actor_id == entry.user_id == int(browser.session["_auth_user_id"])
    assert entry.object_id == str(duplicated.pk)
    assert entry.change_message == "accept: it is saved: the proxy did it"


# -- what stands in the way --------------------------------------------------------------------------------------


def test_evidence_that_has_changed_is_shown_instead_of_acted_upon(browser, duplicated, session, sandbox):
    stale = token_in(browser.get(page("resolve", duplicated.pk)))
    sandbox.append_foreign(session.conversation_id, [{"role": "user", "content": "me too"}])
    before = journal()

    answer = resolve(browser, duplicated, "remove_duplicates", token=stale)

    assert "The evidence has changed since you looked." in answer.content.decode()
    assert "1 foreign item." in answer.content.decode()
    assert token_in(answer) != stale
    assert journal() == before


def test_a_page_without_evidence_does_nothing(browser, duplicated):
    before = journal()

    answer = resolve(browser, duplicated, "remove_duplicates", token="")

    assert "The evidence has changed since you looked." in answer.content.decode()
    assert journal() == before


@pytest.mark.parametrize(
    ("missing", "complaint"),
    [
        ({"resolution": ""}, "Choose what is to be done."),
        ({"resolution": "nonsense"}, "Select a valid choice."),
        ({"reason": "  "}, "Say why, for those who read this later."),
        ({"confirmed": ""}, "Confirm that you want this."),
    ],
)
def test_a_choice_a_reason_and_a_confirmation_are_needed(browser, duplicated, missing, complaint):
    before = journal()

    answer = resolve(browser, duplicated, **{"resolution": "accept", **missing})

    assert complaint in answer.content.decode()
    assert journal() == before


def test_a_choice_that_this_evidence_does_not_allow_is_refused(browser, duplicated):
    before = journal()

    answer = resolve(browser, duplicated, "resend")

    assert "not possible with this evidence" in answer.content.decode()
    assert journal() == before


def test_the_second_of_two_clicks_does_nothing(browser, duplicated, session, sandbox):
    token = token_in(browser.get(page("resolve", duplicated.pk)))

    resolve(browser, duplicated, "remove_duplicates", token=token)
    after_one = journal()
    second = resolve(browser, duplicated, "remove_duplicates", token=token)

    assert journal() == after_one
    assert second.redirect_chain == [(page("change", duplicated.pk), 302)]
    assert said(second)[-1].startswith("Nothing was done: ")
    assert deliver_until_settled(duplicated).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == SENT


def test_a_write_that_is_not_ambiguous_leads_back_to_its_page(browser, held):
    answer = browser.get(page("resolve", held.pk), follow=True)

    assert answer.redirect_chain == [(page("change", held.pk), 302)]
    assert said(answer)[-1].startswith("Nothing was done: ")


def test_an_unreadable_history_leaves_checking_later_and_abandoning(browser, duplicated, session, sandbox):
    sandbox.fault("read_error", operation="list_items", times=None)

    shown = browser.get(page("resolve", duplicated.pk))
    assert "The remote history could not be read just now" in shown.content.decode()
    assert choices_in(shown) == ["recheck", "abandon"]

    refused = resolve(browser, duplicated, "accept", token="")
    assert "Nothing was done: reading the conversation failed" in refused.content.decode()

    resolve(browser, duplicated, "recheck", token="")
    duplicated.refresh_from_db()
    assert duplicated.state == WriteState.SENDING
    sandbox.clear_faults()
    assert deliver_until_settled(duplicated).state == WriteState.AMBIGUOUS

    sandbox.fault("read_error", operation="list_items", times=None)
    resolve(browser, duplicated, "abandon", token="")
    assert operations.get_write(duplicated.pk).state == WriteState.CANCELLED


def test_the_read_is_not_made_inside_a_transaction_under_atomic_requests(browser, duplicated, monkeypatch):
    from django.db import connections

    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)

    assert browser.get(page("resolve", duplicated.pk)).status_code == 200
    resolve(browser, duplicated, "accept")

    duplicated.refresh_from_db()
    assert duplicated.state == WriteState.SENDING


# -- after a restore ---------------------------------------------------------------------------------------------


def test_a_pop_that_a_restored_journal_cannot_account_for_is_decided_by_a_person(browser, sandbox, session):
    deliver_until_settled(append(session, 2))
    pop = operations.pop_item(session.pk)
    operations.after_restore()
    operations.deliver(session.pk)

    shown = browser.get(page("resolve", pop.pk))
    assert choices_in(shown) == ["accept", "resend", "abandon"]
    assert "Accept: it was done" in shown.content.decode()
    assert "Delete the item that is the newest one then, and return it." in shown.content.decode()
    assert "Operator: put in doubt" in shown.content.decode()

    assert said(resolve(browser, pop, "resend"))[0].startswith("Recorded: ")
    assert deliver_until_settled(pop).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["m0"]


def test_what_is_in_doubt_behind_an_ambiguous_chunk_is_said_to_be_looked_for(browser, sandbox, session, quick):
    deliver_until_settled(append(session, 1, prefix="first"))
    quick["CHUNK_ITEMS"] = 2
    write = append(session, 4)
    operations.after_restore()
    session.refresh_from_db()
    sandbox.append_foreign(session.conversation_id, messages(1))
    deliver_until_settled(write)

    shown = browser.get(page("resolve", write.pk)).content.decode()

    assert "Then what comes after it (items 2 to 3) is looked for, and sent where it is not there." in shown

"""Retention: content goes, all that tells one write from another stays, and nothing that is needed is touched."""

from __future__ import annotations

import datetime as dt
import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F
from django.utils import timezone

from convsessions import operations
from convsessions.exceptions import IdempotencyConflict, IllegalMove, InvalidInput
from convsessions.models import ConversationSession, WriteChunk, WriteIntent
from convsessions.operations import purging
from convsessions.operations.batches import by_session
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled, messages, remote_texts, texts
from tests.queue.cluster import run_in_a_process, site_environment

pytestmark = pytest.mark.django_db(transaction=True)

DAYS = 30


def age(*writes, days=DAYS + 1):
    """Have these writes settled so many days ago."""
    WriteIntent.objects.filter(pk__in=[write.pk for write in writes]).update(
        settled_at=F("settled_at") - dt.timedelta(days=days)
    )


def saved(session, count=3, **options):
    return deliver_until_settled(append(session, count, **options))


def refused(sandbox, session):
    """A write that the API refuses as long as the sandbox does not like it."""
    sandbox.fault("fussy", text="m1", times=None, honest=True)
    write = deliver_until_settled(append(session, 3))
    sandbox.clear_faults()
    assert write.state == WriteState.REFUSED
    return write


def content_of(write):
    return list(write.chunks.values_list("payload", "original")), operations.get_write(write.pk).popped


def purge(*arguments):
    out = io.StringIO()
    call_command("purge_payloads", *arguments, stdout=out)
    return out.getvalue()


def test_old_content_goes_and_what_identifies_it_stays(sandbox, session):
    old, new = saved(session, 45, prefix="old"), saved(session, 3, prefix="new")
    popped = deliver_until_settled(operations.pop_item(session.pk))
    age(old, popped)
    version = ConversationSession.objects.get(pk=session.pk).version
    before = list(old.chunks.values_list("remote_ids", "item_count", "state", "anchor"))

    assert operations.purge_payloads(DAYS).writes == 2

    assert content_of(old) == ([("", None)] * 3, None)
    assert content_of(popped) == ([], None)
    assert "new0" in content_of(new)[0][0][0]
    assert list(old.chunks.values_list("remote_ids", "item_count", "state", "anchor")) == before
    now = operations.get_write(old.pk)
    assert (now.body_digest, now.state) == (old.body_digest, WriteState.SAVED)
    assert [write.payload_purged_at is None for write in (now, operations.get_write(new.pk))] == [False, True]
    assert ConversationSession.objects.get(pk=session.pk).version > version
    assert remote_texts(sandbox, session) == texts([*messages(45, prefix="old"), *messages(2, prefix="new")])
    assert operations.purge_payloads(DAYS).writes == 0


def test_an_idempotency_key_is_recognised_for_ever(sandbox, session):
    old = operations.append_items(session.pk, messages(3), idempotency_key="k")
    age(deliver_until_settled(old))
    operations.purge_payloads(DAYS)

    assert operations.append_items(session.pk, messages(3), idempotency_key="k").pk == old.pk
    with pytest.raises(IdempotencyConflict):
        operations.append_items(session.pk, messages(4), idempotency_key="k")


def test_verify_says_purged_and_still_finds_what_is_missing_or_foreign(sandbox, session):
    age(saved(session, 5))
    saved(session, 2, prefix="new")
    operations.purge_payloads(DAYS)

    drift = operations.verify_session(session.pk)
    assert (bool(drift), drift.checked, drift.purged, drift.altered, drift.foreign) == (False, 7, 5, [], [])

    session.refresh_from_db()
    first = sandbox.items(session.conversation_id)[0]["id"]
    WriteChunk.objects.filter(remote_ids__contains=first).update(remote_ids=["msg_gone"] + ["msg_other"] * 4)
    drift = operations.verify_session(session.pk)
    assert drift.missing == ["msg_gone"] + ["msg_other"] * 4
    assert first in drift.foreign


def test_what_is_open_is_never_touched(sandbox, session, quick):
    pending = append(session, 3)
    sending = append(operations.create_session(), 3)
    sandbox.fault("rate_limited", operation="append_items", retry_after="300")
    quick["DELIVERY_BUDGET"] = 0.1
    operations.deliver(sending.session_id)
    ambiguous = saved(operations.create_session())
    WriteIntent.objects.filter(pk=ambiguous.pk).update(state=WriteState.AMBIGUOUS, settled_at=None)
    WriteIntent.objects.update(created_at=timezone.now() - dt.timedelta(days=400))

    assert operations.purge_payloads(0).writes == 0

    assert all(content_of(write)[0][0][0] for write in (pending, sending, ambiguous))


def test_what_may_still_decide_an_outcome_is_kept_whatever_the_retention(sandbox, session):
    """Of what settled lately, a request may land late: its content tells its items from those of a rival."""
    write = saved(session)
    age(write, days=1 / 24)
    assert operations.purge_payloads(0).writes == 0
    age(write, days=1.1 / 24)
    assert operations.purge_payloads(0).writes == 1


def test_a_refused_write_is_kept_while_it_may_be_tried_again(sandbox, session):
    write = refused(sandbox, session)
    age(write)

    purged = operations.purge_payloads(DAYS)
    assert (purged.writes, purged.kept) == (0, 1)
    operations.retry_write(write.pk)
    assert deliver_until_settled(write).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == texts(messages(3))


def test_a_refused_write_that_was_purged_on_demand_cannot_be_tried_again(sandbox, session):
    write = refused(sandbox, session)
    age(write)

    purged = operations.purge_payloads(DAYS, refused=True)
    assert (purged.writes, purged.kept) == (1, 0)
    with pytest.raises(IllegalMove, match="purged"):
        operations.retry_write(write.pk)


def test_a_refused_write_of_a_cleared_or_deleted_session_goes_with_the_others(sandbox):
    cleared, deleted = operations.create_session(), operations.create_session()
    saved(cleared)
    writes = [refused(sandbox, one) for one in (cleared, deleted)]
    deliver_until_settled(operations.clear_session(cleared.pk))
    deliver_until_settled(operations.delete_session(deleted.pk))
    age(*writes)

    purged = operations.purge_payloads(DAYS)
    assert (purged.writes, purged.kept) == (2, 0)


def test_an_operator_who_tries_again_at_this_moment_comes_first(sandbox, session, monkeypatch):
    """The write was chosen for purging, and is retried before its session is locked."""
    write = refused(sandbox, session)
    age(write)
    really_purge = purging.purge

    def retried_first(*args, **options):
        operations.retry_write(write.pk)
        return really_purge(*args, **options)

    monkeypatch.setattr(purging, "purge", retried_first)
    assert operations.purge_payloads(DAYS, refused=True).writes == 0
    assert deliver_until_settled(write).state == WriteState.SAVED


@pytest.mark.skipif(connection.vendor == "sqlite", reason="needs row locks")
def test_it_waits_for_whoever_has_the_session_locked_and_for_nobody_else(sandbox, session):
    from django.db import transaction

    other = operations.create_session()
    for one in (session, other):
        age(saved(one))
    code = "from convsessions import operations\nprint(operations.purge_payloads(30).writes, flush=True)"
    with transaction.atomic():
        ConversationSession.objects.select_for_update().get(pk=session.pk)
        process = run_in_a_process(code, site_environment(sandbox.base_url, {}))
        assert WriteIntent.objects.filter(payload_purged_at__isnull=False, session=session).count() == 0
    assert process.communicate(timeout=60)[0].strip() == "2"


def test_it_works_in_short_transactions(sandbox, session, monkeypatch):
    monkeypatch.setattr(purging, "BATCH_WRITES", 2)
    monkeypatch.setattr(purging, "LOOK", 4)
    age(*[saved(session) for _ in range(5)], saved(operations.create_session()))
    calls, seen = [], []
    really_purge = purging.purge
    monkeypatch.setattr(
        purging, "purge", lambda *args, **options: calls.append(args[1]) or really_purge(*args, **options)
    )

    operations.purge_payloads(DAYS, progress=lambda done, total: seen.append((done, total)))

    assert max(map(len, calls)) == 2
    assert sum(map(len, calls)) == 6
    assert seen == [(4, 6), (6, 6)]


def test_batches_end_at_a_number_of_rows_and_of_items_and_have_one_session_each():
    rows = [(number, "s", items) for number, items in enumerate((60, 40, 1, 500, 1))]
    batches = by_session([*rows, (5, "r", 1), (6, "s", 1)], most_rows=2, most_items=100)
    assert list(batches) == [("r", [5]), ("s", [0, 1]), ("s", [2]), ("s", [3]), ("s", [4, 6])]


def test_a_replayed_agents_call_and_the_api_see_a_purged_write(sandbox, session, client, django_user_model):
    write = saved(session, 3)
    age(write)
    operations.purge_payloads(DAYS)
    client.force_login(django_user_model.objects.create_superuser("root"))

    shown = client.get(f"/api/writes/{write.pk}/").json()
    assert (shown["state"], shown["payload_purged_at"] is None) == ("saved", False)
    page = client.get(f"/admin/convsessions/writeintent/{write.pk}/content/")
    assert (page.status_code, "Its content was purged from the journal at" in page.content.decode()) == (200, True)
    assert client.get(f"/admin/convsessions/writeintent/{write.pk}/change/").status_code == 200


def test_the_command_counts_without_changing_anything(sandbox, session, quick):
    write = saved(session)
    age(write)
    quick["RETENTION_DAYS"] = DAYS

    assert purge("--dry-run").startswith("1 writes would be purged that settled before 20")
    assert content_of(write)[0][0][0]
    result = json.loads(purge("--json"))
    assert (result["writes"], result["kept"], result["dry_run"]) == (1, 0, False)
    assert content_of(write)[0] == [("", None)]
    assert json.loads(purge("--json", "--days", "1"))["writes"] == 0


def test_the_command_tells_of_refused_writes(sandbox, session):
    age(refused(sandbox, session))
    assert purge("--days", "1").splitlines()[1] == ("1 refused writes keep their content, for they may be tried again.")
    assert purge("--days", "1", "--refused").splitlines()[0].startswith("1 writes purged")


@pytest.mark.parametrize("arguments", [(), ("--days", "-1"), ("--days", "nan"), ("--days", "1e12")])
def test_the_command_needs_a_number_of_days(db, arguments):
    with pytest.raises(CommandError, match="--days"):
        purge(*arguments)


def test_without_a_retention_nothing_is_purged_by_default(db):
    with pytest.raises(InvalidInput):
        operations.purge_payloads()


def test_the_command_shows_a_bar_on_a_terminal(sandbox, session, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    age(saved(session))
    shown = Terminal()
    call_command("purge_payloads", "--days", "1", stdout=io.StringIO(), stderr=shown, no_color=True)
    assert "[##############################] 1/1 writes" in shown.getvalue()

"""Recording, changing and deleting sessions by the Python API."""

from __future__ import annotations

import pytest
from django.db import transaction

from convsessions import operations
from convsessions.exceptions import (
    IdempotencyConflict,
    InvalidItem,
    KeyTaken,
    SessionChanged,
    SessionDeleted,
    SessionNotFound,
)
from convsessions.models import ConversationSession, WriteIntent
from tests.histories import append, messages

pytestmark = pytest.mark.django_db(transaction=True)


def versions(session) -> int:
    session.refresh_from_db()
    return session.version


def test_opening_records_the_session_and_its_items_or_neither():
    opened = operations.open_session(key="k", items=messages(25), idempotency_key="1")

    assert (opened.is_new, opened.write.items_total, opened.write.chunks.count()) == (True, 25, 2)
    with pytest.raises(InvalidItem):
        operations.open_session(key="other", items=[{}])
    assert ConversationSession.objects.get() == opened.session


def test_opening_again_with_the_same_key_returns_the_first_session():
    first = operations.open_session(items=messages(1), idempotency_key="1")
    operations.append_items(first.session.pk, messages(1))

    second = operations.open_session(items=messages(1), idempotency_key="1")

    assert second == (first.session, first.write, False)
    with pytest.raises(IdempotencyConflict):
        operations.open_session(items=messages(2), idempotency_key="1")


def test_opening_joins_the_callers_transaction():
    with transaction.atomic():
        operations.open_session(items=messages(1))
        transaction.set_rollback(True)

    assert not ConversationSession.objects.exists()


def test_adopting_reads_the_remote_and_must_not_do_so_in_a_transaction(sandbox):
    with transaction.atomic(), pytest.raises(RuntimeError):
        operations.open_session(conversation_id="conv_1")


def test_the_factory_sees_the_owner_of_a_session_that_is_not_recorded_yet(quick, django_user_model, sandbox):
    owner = django_user_model.objects.create_user("ada")
    quick["CLIENT_FACTORY"] = f"{__name__}.client_of_owner"

    with pytest.raises(LookupError, match="asked for ada"):
        operations.check_conversation("conv_1", owner=owner)


def client_of_owner(session):
    raise SystemError(f"asked for {session.owner.username}")


@pytest.fixture(autouse=True)
def errors_of_factories_reach_the_test(monkeypatch):
    """`no_client` keeps only the name of an error; here its text is the evidence."""

    def told(error):
        raise LookupError(str(error))

    monkeypatch.setattr("convsessions.remote.outcomes.no_client", told)


def test_updating_changes_the_key_and_records_the_metadata_or_neither(session):
    operations.create_session(key="taken")

    with pytest.raises(KeyTaken):
        operations.update_session(session.pk, key="taken", metadata={"a": "b"})
    assert not WriteIntent.objects.exists()
    updated = operations.update_session(session.pk, key="free", metadata={"a": "b"})

    assert (updated.session.key, updated.session.metadata) == ("free", {"a": "b"})
    assert (updated.write.kind, updated.write.state) == ("metadata", "saved")


def test_updating_nothing_changes_nothing(session):
    before = versions(session)

    assert operations.update_session(session.pk) == (session, None, True)
    assert versions(session) == before


def test_metadata_waits_for_a_creation_that_may_be_under_way(session):
    append(session, 1)

    assert operations.update_session(session.pk, metadata={"a": "b"}).write.state == "pending"


def test_a_write_for_a_version_that_is_no_more_is_not_recorded(session):
    seen = versions(session)
    append(session, 1)

    for record in (operations.record_pop, operations.record_clear, operations.record_deletion):
        with pytest.raises(SessionChanged):
            record(session.pk, if_version=seen)
    with pytest.raises(SessionChanged):
        operations.record_append(session.pk, messages(1), if_version=seen)
    with pytest.raises(SessionChanged):
        operations.update_session(session.pk, key="k", if_version=seen)
    assert WriteIntent.objects.count() == 1
    assert operations.record_pop(session.pk, if_version=versions(session))[1]


def test_deleting_frees_the_key_and_refuses_writes():
    session = operations.create_session(key="k")
    write = operations.delete_session(session.pk)

    assert operations.delete_session(session.pk) == write
    with pytest.raises(SessionNotFound):
        operations.get_session(key="k")
    with pytest.raises(SessionDeleted):
        append(session, 1)
    with pytest.raises(SessionDeleted):
        operations.cancel_write(write.pk)
    assert operations.create_session(key="k") != session


def test_a_refused_write_of_a_deleted_session_is_not_tried_again(session, sandbox):
    sandbox.fault("error_before", operation="append_items", status=400, code="bad", param="items[0]")
    write = append(session, 1)
    operations.deliver(session.pk)
    operations.delete_session(session.pk)

    with pytest.raises(SessionDeleted):
        operations.retry_write(write.pk)


def test_who_cancels_is_told_apart(session, django_user_model):
    ada, eve = (django_user_model.objects.create_user(name) for name in ("ada", "eve"))
    mine = operations.create_session(owner=ada)
    causes = []
    for author, actor in ((None, None), (None, ada), (eve, eve), (None, eve)):
        write = operations.append_items(mine.pk, messages(1), author=author)
        causes.append(operations.cancel_write(write.pk, actor=actor).cancel_cause)

    assert causes == ["author", "author", "author", "operator"]

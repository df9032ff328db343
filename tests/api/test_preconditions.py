"""ETag, If-Match and If-None-Match: two clients do not undo what the other has not seen."""

from __future__ import annotations

import threading

import pytest
from django.db import connections
from rest_framework.test import APIClient

from convsessions import operations
from convsessions.models import WriteIntent

from .conftest import code_of, message

pytestmark = pytest.mark.django_db(transaction=True)


def etag(client, session) -> str:
    return client.get(f"/api/sessions/{session.pk}/")["ETag"]


def test_every_change_of_the_history_or_the_session_changes_the_etag(owner, saved, sandbox):
    path, seen = f"/api/sessions/{saved.pk}/", []
    sandbox.fault("bad_key", operation="delete_item", times=1)

    def look(*_) -> None:
        seen.append(etag(owner, saved))

    look()
    look(owner.patch(path, {"key": "k"}, format="json"))
    look(owner.patch(path, {"metadata": {"a": "b"}}, format="json"))
    look(operations.append_items(saved.pk, [message()]))
    look(operations.deliver(saved.pk))
    pop = operations.pop_item(saved.pk)
    look(operations.deliver(saved.pk, budget=0.1))
    look(operations.retry_write(pop.pk))
    look(operations.deliver(saved.pk))
    late = operations.pop_item(saved.pk)
    look()
    look(operations.cancel_write(late.pk))
    look(owner.post(f"{path}clear/"))
    look(operations.deliver(saved.pk))
    look(owner.delete(path))
    saved.owner.delete()
    owner.user.pk = None

    assert len(set(seen)) == len(seen) == 13


def test_without_a_change_the_etag_stays(owner, saved):
    assert etag(owner, saved) == etag(owner, saved)
    operations.deliver(saved.pk)
    operations.sweep()
    assert etag(owner, saved) == etag(owner, saved)


def test_304_for_what_the_client_has(owner, session):
    path, tag = f"/api/sessions/{session.pk}/", etag(owner, session)

    def status(text: str) -> int:
        return owner.get(path, headers={"If-None-Match": text}).status_code

    assert [status(text) for text in (tag, f"W/{tag}", f'"x", {tag}', "*")] == [304] * 4
    assert [status(text) for text in ('"x"', "x", "")] == [200] * 3
    response = owner.get(path, headers={"If-None-Match": tag})
    assert (response.content, response["ETag"]) == (b"", tag)
    operations.append_items(session.pk, [message()])
    assert status(tag) == 200


REQUESTS = {
    "pop": ("post", "pop/", {}),
    "clear": ("post", "clear/", {}),
    "append": ("post", "items/", {"items": [message()]}),
    "key": ("patch", "", {"key": "k"}),
    "metadata": ("patch", "", {"metadata": {"a": "b"}}),
    "delete": ("delete", "", {}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_412_when_the_session_is_not_what_the_client_has_seen(owner, session, name):
    method, end, fields = REQUESTS[name]
    path, tag = f"/api/sessions/{session.pk}/", etag(owner, session)
    operations.append_items(session.pk, [message("of another client")])

    def send(text: str):
        return getattr(owner, method)(f"{path}{end}", fields, format="json", headers={"If-Match": text})

    for text in (tag, f"W/{etag(owner, session)}", "", "x"):
        assert code_of(send(text)) == (412, "precondition_failed")
    assert WriteIntent.objects.count() == 1
    session.refresh_from_db()
    assert (session.key, session.deleted_at) == (None, None)
    assert send(f'"other", {etag(owner, session)}').status_code in {200, 202}


@pytest.mark.parametrize("name", REQUESTS)
def test_any_version_will_do_for_a_star(owner, session, name):
    method, end, fields = REQUESTS[name]

    response = getattr(owner, method)(
        f"/api/sessions/{session.pk}/{end}", fields, format="json", headers={"If-Match": "*"}
    )

    assert response.status_code in {200, 202}


def test_a_repetition_is_answered_though_its_own_first_time_changed_the_etag(owner, session):
    headers = {"If-Match": etag(owner, session), "Idempotency-Key": "1"}

    first, second = (owner.post(f"/api/sessions/{session.pk}/pop/", headers=headers) for _ in range(2))

    assert (first.status_code, second.status_code, second["Idempotent-Replayed"]) == (202, 202, "true")
    assert first.json()["id"] == second.json()["id"]


def test_of_several_clients_at_once_one_pops(owner, session):
    operations.append_items(session.pk, [message()])
    tag, barrier, statuses = etag(owner, session), threading.Barrier(4), []

    def request() -> None:
        client = APIClient()
        client.force_authenticate(owner.user)
        barrier.wait()
        statuses.append(client.post(f"/api/sessions/{session.pk}/pop/", headers={"If-Match": tag}).status_code)
        connections.close_all()

    threads = [threading.Thread(target=request) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(statuses) == [202, 412, 412, 412]
    assert session.writes.filter(kind="pop").count() == 1

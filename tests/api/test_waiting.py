"""Prefer: wait=N, as RFC 7240 has it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, connections, transaction

from convsessions import operations

from .conftest import message, texts

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def worker(session_id) -> Iterator[None]:
    """Somebody who delivers what is recorded meanwhile."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            operations.deliver(session_id)
            stop.wait(0.05)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def append(client, session, **headers):
    return client.post(f"/api/sessions/{session.pk}/items/", {"items": [message()]}, format="json", headers=headers)


def test_an_append_that_settles_in_time_answers_201(owner, session, sandbox):
    with worker(session.pk):
        response = append(owner, session, Prefer="wait=10")

    assert (response.status_code, response.json()["state"]) == (201, "saved")
    assert response["Preference-Applied"] == "wait=10"
    assert response["Location"].endswith(f"/api/writes/{response.json()['id']}/")
    assert "Retry-After" not in response


def test_a_pop_that_settles_in_time_answers_200_with_the_item(owner, saved):
    with worker(saved.pk):
        response = owner.post(f"/api/sessions/{saved.pk}/pop/", headers={"Prefer": "respond-async, wait=10"})

    assert (response.status_code, texts([response.json()["popped"]])) == (200, ["3"])


def test_a_clear_that_settles_in_time_answers_200(owner, saved):
    with worker(saved.pk):
        response = owner.post(f"/api/sessions/{saved.pk}/clear/", headers={"Prefer": "wait=10"})

    assert (response.status_code, response.json()["state"]) == (200, "saved")


def test_a_cancellation_that_comes_too_late_answers_201(owner, saved, sandbox):
    sandbox.fault("lost_after", operation="append_items", times=1)
    write = operations.append_items(saved.pk, [message()])
    operations.deliver(saved.pk, budget=0)

    with worker(saved.pk):
        response = owner.post(f"/api/writes/{write.pk}/cancel/", headers={"Prefer": "wait=10"})

    assert (response.status_code, response.json()["state"], response.json()["items_saved"]) == (201, "saved", 1)


def test_a_write_that_does_not_settle_in_time_answers_202(owner, session):
    started = time.monotonic()

    response = append(owner, session, Prefer="wait=1")

    assert 1 <= time.monotonic() - started < 15
    assert (response.status_code, response["Preference-Applied"], response["Retry-After"]) == (202, "wait=1", "1")


def test_nobody_waits_longer_than_the_setting_says(owner, session, quick):
    quick["WAIT_MAX"] = 0.2
    started = time.monotonic()

    response = append(owner, session, Prefer="wait=3600")

    assert time.monotonic() - started < 15
    assert (response.status_code, response["Preference-Applied"]) == (202, "wait=0")


def test_a_write_that_needs_a_person_is_not_waited_for(owner, ambiguous):
    started = time.monotonic()

    response = owner.get(f"/api/writes/{ambiguous.pk}/", headers={"Prefer": "wait=20"})

    assert time.monotonic() - started < 15
    assert (response.status_code, response.json()["state"], response["Retry-After"]) == (200, "ambiguous", "1")


@pytest.mark.parametrize(
    ("header", "applied"),
    [
        ("wait=0", "wait=0"),
        ('WAIT = "0"; x=1', "wait=0"),
        ("return=minimal, wait=0, wait=9", "wait=0"),
        ("wait", None),
        ("wait=soon", None),
        ("wait=-1", None),
        ("waiting=5", None),
        ("", None),
    ],
)
def test_a_preference_that_cannot_be_understood_is_ignored(owner, session, header, applied):
    response = append(owner, session, Prefer=header)

    assert response.status_code == 202
    assert response.get("Preference-Applied") == applied


def test_inside_somebody_elses_transaction_nobody_waits(owner, session):
    started = time.monotonic()

    with transaction.atomic():
        response = append(owner, session, Prefer="wait=20")

    assert time.monotonic() - started < 15
    assert response.status_code == 202
    assert "Preference-Applied" not in response


def test_waiting_holds_no_transaction(owner, session, monkeypatch):
    seen = []
    wait = operations.wait_for_write

    def looking(*args, **kwargs):
        seen.append(connection.in_atomic_block)
        return wait(*args, **kwargs)

    monkeypatch.setattr(operations, "wait_for_write", looking)
    append(owner, session, Prefer="wait=0")
    owner.post(f"/api/sessions/{session.pk}/pop/", headers={"Prefer": "wait=0"})

    assert seen == [False, False]

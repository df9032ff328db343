"""What the list of sessions can be filtered by."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from convsessions import operations
from convsessions.models import ConversationSession

from .conftest import code_of, message

pytestmark = pytest.mark.django_db(transaction=True)


def found(client, **query) -> list[str]:
    return [row["id"] for row in client.get("/api/sessions/", query).json()["results"]]


def test_by_key_exactly_whatever_the_database_takes_for_equal(owner, operator):
    keys = ["a", "A", "a ", "á", "b"]
    ids = {key: str(operations.create_session(owner=owner.user, key=key).pk) for key in keys}
    theirs = str(operations.create_session(key="a").pk)

    assert {key: found(owner, key=key) for key in keys} == {key: [ids[key]] for key in keys}
    assert found(operator, key="a") == [theirs, ids["a"]]
    assert [found(owner, key=key) for key in ("c", "", "\x00", "b" * 256, "\U0001f600")] == [[]] * 5


@pytest.fixture
def sessions_by_state(owner, ambiguous, sandbox) -> dict[str, str]:
    idle, busy, held = (operations.create_session(owner=owner.user) for _ in range(3))
    operations.append_items(busy.pk, [message()])
    sandbox.fault("bad_key")
    operations.append_items(held.pk, [message()])
    operations.deliver(held.pk, budget=0.1)
    return {
        "idle": str(idle.pk), "busy": str(busy.pk), "held": str(held.pk), "blocked": str(ambiguous.session_id),
    }  # fmt: skip


def test_by_state(owner, sessions_by_state):
    names = {pk: name for name, pk in sessions_by_state.items()}

    shown = {state: [names[pk] for pk in found(owner, state=state)] for state in ("idle", "busy", "blocked")}

    assert shown == {"idle": ["idle"], "busy": ["held", "busy"], "blocked": ["blocked"]}
    assert len(found(owner, state=["idle", "blocked"])) == 2
    told = {names[row["id"]]: row["state"] for row in owner.get("/api/sessions/").json()["results"]}
    assert told == {"idle": "idle", "busy": "busy", "held": "busy", "blocked": "blocked"}


def test_by_what_needs_attention(owner, sessions_by_state):
    names = {pk: name for name, pk in sessions_by_state.items()}

    assert [names[pk] for pk in found(owner, needs_attention="true")] == ["held", "blocked"]
    assert [names[pk] for pk in found(owner, needs_attention="false")] == ["busy", "idle"]
    told = {names[row["id"]]: row["needs_attention"] for row in owner.get("/api/sessions/").json()["results"]}
    assert told == {"idle": False, "busy": False, "held": True, "blocked": True}


def test_by_time(owner):
    old, new = (operations.create_session(owner=owner.user) for _ in range(2))
    moment = timezone.now() - dt.timedelta(days=1)
    ConversationSession.objects.filter(pk=old.pk).update(created_at=moment - dt.timedelta(hours=1))
    text = moment.isoformat()

    assert found(owner, created_after=text) == [str(new.pk)]
    assert found(owner, created_before=text) == [str(old.pk)]
    assert found(owner, created_after=text, created_before=text) == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"state": "asleep"}, "invalid_choice"),
        ({"needs_attention": "yes"}, "invalid_choice"),
        ({"deleted": ""}, "invalid_choice"),
        ({"created_after": "yesterday"}, "invalid"),
        ({"created_after": "2026-01-31"}, "invalid"),
        ({"created_after": "2026-01-31T12:00:00"}, "invalid"),
        ({"created_after": "2026-02-31T12:00:00Z"}, "invalid"),
        ({"created_before": "0001-01-01T00:00:00+14:00"}, "invalid"),
        ({"created_before": "٢٠٢٦-01-31T12:00:00Z"}, "invalid"),
        ({"created_before": ""}, "invalid"),
    ],
)
def test_a_filter_that_cannot_be_understood_is_named(owner, query, code):
    response = owner.get("/api/sessions/", query)

    assert code_of(response) == (422, code)
    assert response.json()["field"] == next(iter(query))

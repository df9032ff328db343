"""Operators with exactly the permissions that a test names, and writes that became ambiguous at the wire.

Chunks have three items here; the write of seven items in these tests has chunks of items 0-2, 3-5 and 6.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from convsessions import operations
from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, messages

ALL = (
    "view_writeintent",
    "view_conversationsession",
    "reconcile_writeintent",
    "resolve_writeintent",
    "cancel_writeintent",
    "view_payload",
)
ITEMS = 7
SECOND_CHUNK = messages(3, start=3)


@pytest.fixture(autouse=True)
def chunks_of_three(quick) -> None:
    quick["CHUNK_ITEMS"] = 3


@pytest.fixture
def operator(transactional_db) -> Callable[..., Client]:
    """`operator("view_writeintent", …)`: the browser of a staff user who holds exactly these permissions."""

    def make(*codenames: str) -> Client:
        user = get_user_model().objects.create_user(f"operator-{uuid.uuid4()}", is_staff=True)
        ours = Permission.objects.filter(content_type__app_label="convsessions")
        user.user_permissions.set(ours.filter(codename__in=codenames))
        client = Client()
        client.force_login(user)
        return client

    return make


@pytest.fixture
def browser(operator) -> Client:
    """The browser of an operator who may do everything."""
    return operator(*ALL)


@pytest.fixture
def duplicated(sandbox, session) -> WriteIntent:
    """The second chunk's reply was lost, and a proxy had sent it twice."""
    write = lose_second_chunk(sandbox, session, "lost_after")
    sandbox.append_foreign(session.conversation_id, SECOND_CHUNK)
    return ambiguous(write)


@pytest.fixture
def partial(sandbox, session) -> WriteIntent:
    """The second chunk was lost, and two of its three items are in the history anyway."""
    write = lose_second_chunk(sandbox, session, "lost_before")
    sandbox.append_foreign(session.conversation_id, SECOND_CHUNK[:2])
    return ambiguous(write)


@pytest.fixture
def altered(sandbox, session) -> WriteIntent:
    """The second chunk was stored, with other texts."""
    sandbox.fault("rewritten", operation="append_items", skip=1)
    write = append(session, ITEMS)
    operations.deliver(session.pk)
    session.refresh_from_db()
    return ambiguous(write)


@pytest.fixture
def late(sandbox, session) -> WriteIntent:
    """The last chunk was judged absent and sent again, and then the first request landed after all."""
    sandbox.fault("late_apply", operation="append_items", skip=2, seconds=1.6)
    sandbox.fault("latency", operation="append_items", skip=2, seconds=0.8)
    return ambiguous(append(session, ITEMS))


@pytest.fixture
def held(sandbox, session, quick) -> WriteIntent:
    """The key was rejected; the next attempt is minutes away."""
    quick["RETRY_BACKOFF"] = (600.0, 600.0)
    sandbox.fault("bad_key", times=1)
    write = append(session, ITEMS)
    operations.deliver(session.pk)
    write.refresh_from_db()
    assert write.hold_code == "bad_key"
    return write


def lose_second_chunk(sandbox: Any, session: ConversationSession, kind: str) -> WriteIntent:
    """Deliver step by step, until nobody knows what became of items 3-5."""
    sandbox.fault(kind, operation="append_items", skip=1)
    write = append(session, ITEMS)
    while not write.chunks.filter(first_item=3, state=WriteState.SENDING).exists():
        operations.deliver(session.pk, budget=0)
    session.refresh_from_db()
    return write


def ambiguous(write: WriteIntent) -> WriteIntent:
    """Deliver, and see that it stops there."""
    operations.deliver(write.session_id)
    write.refresh_from_db()
    assert write.state == WriteState.AMBIGUOUS
    return write


def page(name: str, *args: Any, model: str = "writeintent") -> str:
    return reverse(f"admin:convsessions_{model}_{name}", args=args)


def token_in(response: Any) -> str:
    """The evidence that a resolve page was made from."""
    found = re.search(r'name="evidence" value="([^"]*)"', response.content.decode())
    assert found
    return found[1]


def choices_in(response: Any) -> list[str]:
    return re.findall(r'name="resolution" value="([^"]*)"', response.content.decode())


def said(response: Any) -> list[str]:
    """The messages of a page that was followed to."""
    return [str(message) for message in response.context["messages"]]

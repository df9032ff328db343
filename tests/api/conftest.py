"""People with their clients, and the few things that every test of the API does."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from rest_framework.response import Response
from rest_framework.test import APIClient

from convsessions import operations
from convsessions.models import ConversationSession, WriteIntent

from . import documented

A, B = {"topic": "a"}, {"topic": "b"}
"""Metadata."""


def message(text: str = "Hello") -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def create(client, fields, **headers):
    return client.post("/api/sessions/", fields, format="json", headers=headers)


def remote_metadata(sandbox, session) -> dict:
    session.refresh_from_db()
    return sandbox.conversation(session.conversation_id)["metadata"]


def person(name: str, *permissions: str, staff: bool = False) -> APIClient:
    """The client of a new user who has these permissions of the app; the user is its `user`."""
    user = get_user_model().objects.create_user(name, is_staff=staff)
    ours = Permission.objects.filter(content_type__app_label="convsessions")
    user.user_permissions.set(ours.filter(codename__in=permissions))
    client = APIClient()
    client.force_authenticate(user)
    client.user = user
    return client


def code_of(response: Response) -> tuple[int, str]:
    """Status and code of a problem, after a look at its shape."""
    body = response.json()
    assert response["Content-Type"] == "application/problem+json"
    assert body["type"] == "about:blank"
    assert body["status"] == response.status_code
    assert body["title"]
    assert body["detail"]
    return response.status_code, body["code"]


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["content"][0]["text"] for item in items]


@pytest.fixture(autouse=True)
def answers_as_documented(monkeypatch, request) -> None:
    """Every answer that a test of this folder gets is compared with the OpenAPI document."""
    if request.node.get_closest_marker("urls"):
        return
    send = APIClient.request

    def checked(self: APIClient, **environ: Any) -> Response:
        response: Response = send(self, **environ)
        path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        if path.startswith(documented.PREFIX) and "format=xml" not in query:
            documented.check(path, environ["REQUEST_METHOD"], response)
        return response

    monkeypatch.setattr(APIClient, "request", checked)


@pytest.fixture
def owner(transactional_db) -> APIClient:
    return person("owner")


@pytest.fixture
def stranger(transactional_db) -> APIClient:
    return person("stranger")


@pytest.fixture
def operator(transactional_db) -> APIClient:
    return person("operator", "view_conversationsession", "reconcile_writeintent", "resolve_writeintent", staff=True)


@pytest.fixture
def session(owner) -> ConversationSession:
    """A session of the owner."""
    return operations.create_session(owner=owner.user)


@pytest.fixture
def saved(session, sandbox) -> ConversationSession:
    """A session of the owner with the messages "1", "2" and "3" in its conversation."""
    operations.append_items(session.pk, [message(text) for text in "123"])
    operations.deliver(session.pk)
    session.refresh_from_db()
    return session


@pytest.fixture
def ambiguous(session, sandbox) -> WriteIntent:
    """A write of the owner that waits for an operator: its item was stored in altered form."""
    sandbox.fault("rewritten", times=1)
    write = operations.append_items(session.pk, [message("secret")])
    operations.deliver(session.pk)
    write.refresh_from_db()
    assert write.state == "ambiguous"
    return write


@pytest.fixture
def duplicated(saved, sandbox) -> WriteIntent:
    """A write of the owner whose reply was lost, and whose item stands in the conversation twice."""
    sandbox.fault("lost_after", operation="append_items")
    sandbox.settings(latency=0.1)
    write = operations.append_items(saved.pk, [message("secret")])
    operations.deliver(saved.pk, budget=0.05)
    sandbox.append_foreign(saved.conversation_id, [message("secret")])
    sandbox.settings(latency=0)
    operations.deliver(saved.pk)
    write.refresh_from_db()
    assert write.state == "ambiguous"
    return write

"""The sandbox inside a host site, with the site's middleware, on Django's own server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from openai import APIConnectionError, NotFoundError, OpenAI

from convsessions.sandbox.faults import clear_faults, set_fault
from convsessions.sandbox.models import SandboxFault, SandboxRequest

from .conftest import texts, user

pytestmark = [pytest.mark.urls("tests.sandbox.host"), pytest.mark.django_db(transaction=True)]

CONTROL = ["requests", "faults", "conversations/conv_0"]


@pytest.fixture
def mounted(live_server: Any) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{live_server.url}/mock/v1", api_key="sandbox", max_retries=0, timeout=10) as client:
        yield client


@pytest.fixture
def browser() -> Client:
    """Django's test client: pytest-django's own fixture is hidden by ours for the API."""
    return Client()


def test_it_works_under_any_prefix(mounted: OpenAI) -> None:
    conversation = mounted.conversations.create(items=[user("1")]).id
    mounted.conversations.items.create(conversation, items=[user("2")])

    page = mounted.conversations.items.list(conversation, order="asc")

    assert texts([item.to_dict() for item in page.data]) == ["1", "2"]
    assert SandboxRequest.objects.first().path == "/mock/v1/conversations"


@pytest.mark.parametrize("kind", ["lost_before", "lost_after", "truncated"])
def test_connections_break_there_too(mounted: OpenAI, kind: str) -> None:
    conversation = mounted.conversations.create().id
    set_fault(kind, operation="append_items")

    with pytest.raises(APIConnectionError):
        mounted.with_options(timeout=5).conversations.items.create(conversation, items=[user()])

    assert len(mounted.conversations.items.list(conversation).data) == (kind != "lost_before")


def test_it_stores_what_it_says_under_atomic_requests(
    mounted: OpenAI, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import connection

    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    conversation = mounted.conversations.create().id
    set_fault("error_after", operation="append_items")

    with pytest.raises(Exception, match="500"):
        mounted.conversations.items.create(conversation, items=[user()])

    assert len(mounted.conversations.items.list(conversation).data) == 1


@pytest.mark.parametrize("path", CONTROL)
def test_control_is_404_on_a_site_without_debug(browser: Client, settings: Any, path: str) -> None:
    settings.DEBUG = False

    reply = browser.get(f"/mock/v1/sandbox/{path}")

    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "unknown_url")


@pytest.mark.parametrize("name", ["DEBUG", "CONVSESSIONS_SANDBOX_CONTROL"])
def test_control_answers_where_a_setting_allows_it(browser: Client, settings: Any, name: str) -> None:
    setattr(settings, name, True)

    assert browser.get("/mock/v1/sandbox/requests").json() == []


def test_faults_are_set_and_removed_from_python(mounted: OpenAI) -> None:
    set_fault("error_before", status=404)
    with pytest.raises(NotFoundError):
        mounted.conversations.create()

    set_fault("error_before", times=None)
    clear_faults()

    assert SandboxFault.objects.count() == 0
    with pytest.raises(ValueError, match="nonsense"):
        set_fault("nonsense")


def test_a_failure_of_the_sandbox_is_a_500_in_the_log(
    browser: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("convsessions.sandbox.store.create", fail)

    reply = browser.post("/mock/v1/conversations", b"{}", "application/json", headers={"Authorization": "Bearer x"})

    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "server_error")
    assert [row.status for row in SandboxRequest.objects.all()] == [500]
    assert "the sandbox failed" in caplog.text


def test_other_methods_are_405(browser: Client) -> None:
    assert browser.put("/mock/v1/conversations").status_code == 405

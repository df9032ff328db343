"""Each fault of a reply: what the real client sees, and what is stored."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from typing import Any

import pytest
from openai import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    InternalServerError,
    OpenAI,
    PermissionDeniedError,
    RateLimitError,
)

from convsessions.sandbox.testing import SandboxProcess

from .conftest import eventually, raw, texts, user


def append(client: OpenAI, conversation: str, *numbers: str) -> Any:
    return client.conversations.items.create(conversation, items=[user(number) for number in numbers])


@pytest.mark.parametrize(("kind", "stored"), [("lost_before", []), ("lost_after", ["1", "2"])])
def test_a_lost_reply(client: OpenAI, sandbox: SandboxProcess, conversation: str, kind: str, stored: list[str]) -> None:
    sandbox.fault(kind, operation="append_items")

    with pytest.raises(APIConnectionError) as lost:
        append(client, conversation, "1", "2")

    assert "disconnected without sending" in str(lost.value.__cause__)
    assert texts(sandbox.items(conversation)) == stored
    row = sandbox.requests(conversation)[-1]
    assert (row["status"], row["fault"], row["applied"]) == (0, kind, bool(stored))
    append(client, conversation, "3")


@pytest.mark.parametrize(("kind", "stored"), [("error_before", []), ("error_after", ["1"])])
@pytest.mark.parametrize("status", [400, 404, 408, 409, 413, 422, 500, 502, 503])
def test_any_error(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, kind: str, stored: list[str], status: int
) -> None:
    sandbox.fault(kind, status=status, code="some_code", param="some_param")

    with pytest.raises(APIStatusError) as error:
        append(client, conversation, "1")

    assert (error.value.status_code, error.value.code, error.value.param) == (status, "some_code", "some_param")
    assert texts(sandbox.items(conversation)) == stored


def test_an_error_is_500_by_default_and_can_have_any_body(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    sandbox.fault("error_before")
    sandbox.fault("error_before", status=502, body={"detail": "upstream"})

    with pytest.raises(InternalServerError) as first:
        append(client, conversation, "1")
    with pytest.raises(InternalServerError) as second:
        append(client, conversation, "1")

    assert (first.value.status_code, first.value.code) == (500, "server_error")
    assert second.value.response.json() == {"detail": "upstream"}


@pytest.mark.parametrize(("kind", "at_timeout"), [("hang_before", []), ("hang_after", ["1"])])
def test_a_hang_is_stored_although_the_client_has_gone(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, kind: str, at_timeout: list[str]
) -> None:
    sandbox.fault(kind, seconds=0.6)

    with pytest.raises(APITimeoutError):
        append(client.with_options(timeout=0.2), conversation, "1")

    assert texts(sandbox.items(conversation)) == at_timeout
    assert sandbox.requests(conversation)[-1]["finished_at"] is None
    row = eventually(lambda: (r := sandbox.requests(conversation)[-1])["finished_at"] and r)
    assert (row["fault"], row["applied"]) == (kind, True)
    assert row["finished_at"] - row["started_at"] >= 0.6
    assert texts(sandbox.items(conversation)) == ["1"]


@pytest.mark.parametrize("kind", ["hang_before", "hang_after", "latency"])
def test_a_patient_client_gets_the_reply_of_a_slow_request(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, kind: str
) -> None:
    sandbox.fault(kind, seconds=0.1)

    started = time.monotonic()
    page = append(client, conversation, "1")

    assert time.monotonic() - started >= 0.1
    assert texts(raw(page)["data"]) == ["1"]


@pytest.mark.parametrize("status", [None, 503])
def test_a_batch_can_be_applied_long_after_its_request_failed(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, status: int | None
) -> None:
    sandbox.fault("late_apply", seconds=0.3, status=status)

    with pytest.raises(APIStatusError if status else APIConnectionError):
        append(client, conversation, "late")

    assert sandbox.items(conversation) == []
    append(client, conversation, "early")
    eventually(lambda: len(sandbox.items(conversation)) == 2)
    assert texts(sandbox.items(conversation)) == ["early", "late"]
    row = eventually(lambda: (r := sandbox.requests(conversation)[-2])["applied"] and r)
    assert (row["status"], row["fault"]) == (status or 0, "late_apply")


def test_a_batch_that_is_applied_late_is_lost_if_the_conversation_is_gone(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    sandbox.fault("late_apply", seconds=0.05)
    with pytest.raises(APIConnectionError):
        append(client, conversation, "late")

    client.conversations.delete(conversation)

    time.sleep(0.1)  # there is nothing to wait for: nothing may happen
    assert sandbox.items(conversation) == []


def test_a_reply_that_breaks_off(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("truncated")

    with pytest.raises(APIConnectionError) as broken:
        append(client, conversation, "1")

    assert "without sending complete message body" in str(broken.value.__cause__)
    assert texts(sandbox.items(conversation)) == ["1"]


def test_a_reply_that_is_half_of_its_json(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("truncated", honest=True)

    with pytest.raises(json.JSONDecodeError):
        append(client, conversation, "1")

    assert texts(sandbox.items(conversation)) == ["1"]


@pytest.mark.parametrize(("kind", "stored"), [("html_before", []), ("html", ["1"])])
def test_the_page_of_a_gateway(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, kind: str, stored: list[str]
) -> None:
    sandbox.fault(kind)

    reply: Any = append(client, conversation, "1")

    assert isinstance(reply, str)
    assert texts(sandbox.items(conversation)) == stored


def test_a_reply_with_fewer_ids(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("fewer_ids")

    page = append(client, conversation, "1", "2", "3")

    assert texts(raw(page)["data"]) == ["1", "2"]
    assert page.last_id == page.data[-1].id
    assert texts(sandbox.items(conversation)) == ["1", "2", "3"]


def test_a_hang_of_which_nothing_is_ever_stored(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("hang_lost", seconds=0.4)

    with pytest.raises(APITimeoutError):
        append(client.with_options(timeout=0.2), conversation, "1")

    eventually(lambda: sandbox.requests(conversation)[-1]["finished_at"])
    assert sandbox.items(conversation) == []


def test_a_batch_that_is_stored_twice_while_the_reply_is_lost(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    sandbox.fault("twice", lost=True)

    with pytest.raises(APIConnectionError):
        append(client, conversation, "1", "2")

    assert texts(sandbox.items(conversation)) == ["1", "2", "1", "2"]


def test_a_batch_that_is_stored_twice(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("twice")

    page = append(client, conversation, "1", "2")

    stored = sandbox.items(conversation)
    assert texts(stored) == ["1", "2", "1", "2"]
    assert [item.id for item in page.data] == [item["id"] for item in stored[:2]]


@pytest.mark.parametrize("retry_after", [None, "7", formatdate(2_000_000_000, usegmt=True)])
@pytest.mark.parametrize(("kind", "code"), [("rate_limited", "rate_limit_exceeded"), ("quota", "insufficient_quota")])
def test_429(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, kind: str, code: str, retry_after: str | None
) -> None:
    sandbox.fault(kind, retry_after=retry_after)

    with pytest.raises(RateLimitError) as limited:
        append(client, conversation, "1")

    assert limited.value.code == code
    assert limited.value.response.headers.get("Retry-After") == retry_after
    assert sandbox.items(conversation) == []


@pytest.mark.parametrize(
    ("kind", "error", "code", "param"),
    [
        ("locked", BadRequestError, "conversation_locked", "conversation"),
        ("bad_key", AuthenticationError, "invalid_api_key", None),
        ("forbidden", PermissionDeniedError, None, None),
    ],
)
def test_other_refusals(
    client: OpenAI,
    sandbox: SandboxProcess,
    conversation: str,
    kind: str,
    error: type[APIStatusError],
    code: str | None,
    param: str | None,
) -> None:
    sandbox.fault(kind)

    with pytest.raises(error) as refused:
        append(client, conversation, "1")

    assert (refused.value.code, refused.value.param) == (code, param)
    assert sandbox.items(conversation) == []

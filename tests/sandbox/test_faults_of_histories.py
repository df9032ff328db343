"""Each fault of a history or of reading it, and slow replies: what the real client sees, and what is stored."""

from __future__ import annotations

import time
from typing import Any

import pytest
from openai import (
    APIConnectionError,
    APITimeoutError,
    InternalServerError,
    OpenAI,
)

from convsessions.sandbox.testing import SandboxProcess

from .conftest import eventually, raw, texts, user


def append(client: OpenAI, conversation: str, *numbers: str) -> Any:
    return client.conversations.items.create(conversation, items=[user(number) for number in numbers])


@pytest.mark.parametrize(("where", "stored"), [("before", ["F", "1", "2"]), ("after", ["1", "2", "F"])])
def test_a_foreign_writer(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, where: str, stored: list[str]
) -> None:
    sandbox.fault("foreign", where=where, items=[user("F")])

    page = append(client, conversation, "1", "2")

    assert texts(raw(page)["data"]) == ["1", "2"]
    assert texts(sandbox.items(conversation)) == stored


def test_a_foreign_writer_appends_a_message_of_the_assistant_by_default(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    sandbox.fault("foreign")

    append(client, conversation, "1")

    assert [item["role"] for item in sandbox.items(conversation)] == ["assistant", "user"]


def test_a_reply_that_trickles_outlasts_a_timeout_per_read(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    sandbox.fault("trickle", seconds=0.002)

    started = time.monotonic()
    page = append(client.with_options(timeout=0.2), conversation, "1")

    assert time.monotonic() - started > 0.4
    assert texts(raw(page)["data"]) == ["1"]
    row = sandbox.requests(conversation)[-1]
    assert (row["status"], row["applied"]) == (200, True)
    assert row["finished_at"] - row["started_at"] > 0.4


def test_a_trickle_that_nobody_reads_ends_in_the_log(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    sandbox.fault("trickle", seconds=0.05)
    with pytest.raises(APITimeoutError):
        append(client.with_options(timeout=0.02), conversation, "1")

    eventually(lambda: sandbox.requests(conversation)[-1]["finished_at"])


def test_an_empty_page_with_more_to_come(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    append(client, conversation, "1")
    sandbox.fault("empty_page")

    page = client.conversations.items.list(conversation)

    assert (page.data, page.has_more, page.last_id) == ([], True, None)


def test_a_cursor_that_does_not_advance(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    append(client, conversation, "1", "2", "3")
    sandbox.fault("stuck_cursor", times=None)

    read = client.conversations.items.list(conversation, order="asc", limit=2)
    pages = [texts(raw(page)["data"]) for page, _ in zip(read.iter_pages(), range(4), strict=False)]

    assert pages == [["1", "2"]] * 4


def test_a_read_that_fails(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("read_error")
    append(client, conversation, "1")

    with pytest.raises(InternalServerError):
        client.conversations.items.list(conversation)

    assert texts(raw(client.conversations.items.list(conversation))["data"]) == ["1"]


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize(("count", "seen"), [(1, ["1", "2"]), (2, ["1"]), (9, [])])
def test_a_stale_read(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, order: Any, count: int, seen: list[str]
) -> None:
    append(client, conversation, "1", "2", "3")
    sandbox.fault("stale_read", count=count)

    page = client.conversations.items.list(conversation, order=order)

    assert texts(raw(page)["data"]) == (seen if order == "asc" else seen[::-1])


def test_an_altered_text(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("rewritten", text="!")
    output = {"type": "function_call_output", "call_id": "c", "output": "22"}
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "e"}

    image = {"role": "user", "content": [{"type": "input_image", "image_url": "u"}]}

    client.conversations.items.create(conversation, items=[user("1"), output, reasoning, image])

    message, output, reasoning, image = sandbox.items(conversation)
    assert image["content"] == [{"type": "input_image", "image_url": "u", "detail": "auto"}]
    assert [message["content"][0]["text"], output["output"], reasoning["summary"][0]["text"]] == ["1!", "22!", "s!"]


def test_a_field_that_gets_lost(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("lossy", field="status")
    sandbox.fault("lossy", field="annotations")

    append(client, conversation, "1")
    client.conversations.items.create(conversation, items=[{"role": "assistant", "content": "2"}])

    first, second = sandbox.items(conversation)
    assert first.keys() == {"id", "type", "role", "content"}
    assert second["content"] == [{"type": "output_text", "logprobs": [], "text": "2"}]


def test_other_operations_can_fail_too(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    (item,) = append(client, conversation, "1").data
    for operation in ("create_conversation", "retrieve_conversation", "delete_item", "delete_conversation"):
        sandbox.fault("lost_after", operation=operation)

    for request in (
        lambda: client.conversations.create(items=[user("orphan")]),
        lambda: client.conversations.retrieve(conversation),
        lambda: client.conversations.items.delete(item.id, conversation_id=conversation),
        lambda: client.conversations.delete(conversation),
    ):
        with pytest.raises(APIConnectionError):
            request()

    truth = sandbox.conversation(conversation)
    assert (truth["items"], truth["deleted"]) == ([], True)
    created = next(row for row in sandbox.requests()[1:] if row["operation"] == "create_conversation")
    assert texts(sandbox.items(created["conversation"])) == ["orphan"]

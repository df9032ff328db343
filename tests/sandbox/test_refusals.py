"""What the API refuses: status 400, the code, the param, and nothing stored."""

from __future__ import annotations

from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from convsessions.sandbox.testing import SandboxProcess

from .conftest import call, user

NEED_AN_ID = [
    "file_search_call",
    "web_search_call",
    "computer_call",
    "code_interpreter_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_call",
    "item_reference",
    "program",
    "program_output",
]


def without_id(kind: str) -> dict[str, Any]:
    from convsessions.sandbox.shapes import ITEMS

    shape = ITEMS[kind]
    return {"type": kind, **dict.fromkeys(shape.nullable), **dict.fromkeys(shape.required, "x")}


REFUSED_ITEMS = [
    (user(id="bad_1"), "invalid_value", "items[1].id"),
    (call(id="msg_1"), "invalid_value", "items[1].id"),
    (user(id="msg_" + "a" * 61), "string_above_max_length", "items[1].id"),
    (call(call_id="c" * 65), "string_above_max_length", "items[1].call_id"),
    (user(status=None), "unknown_parameter", "items[1].status"),
    (user(phase=None), "unknown_parameter", "items[1].phase"),
    (user(provider_data={}), "unknown_parameter", "items[1].provider_data"),
    ({"type": "message", "content": "x"}, "missing_required_parameter", "items[1].role"),
    (user(id=1), "invalid_type", "items[1].id"),
    (user(content=["x"]), "invalid_type", "items[1].content[0]"),
    (user(role="robot"), "invalid_value", "items[1].role"),
    (user(content=1), "invalid_type", "items[1].content"),
    ({"type": "nonsense"}, "invalid_value", "items[1].type"),
    ({"content": "x"}, "missing_required_parameter", "items[1].type"),
    ("text", "invalid_type", "items[1]"),
    ({"type": "reasoning", "summary": []}, "invalid_item", "items[1]"),
    (
        {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]},
        "invalid_value",
        "items[1].content[0].type",
    ),
    (
        {"role": "user", "content": [{"type": "output_text", "text": "x"}]},
        "invalid_value",
        "items[1].content[0].type",
    ),
    (
        {"role": "user", "content": [{"type": "input_text", "text": "x", "cache": 1}]},
        "unknown_parameter",
        "items[1].content[0].cache",
    ),
    ({"role": "user", "content": [{"type": "input_text"}]}, "missing_required_parameter", "items[1].content[0].text"),
    *((without_id(kind), "missing_required_parameter", "items[1].id") for kind in NEED_AN_ID),
]


@pytest.mark.parametrize(("item", "code", "param"), REFUSED_ITEMS)
def test_a_bad_item_is_refused_with_its_whole_batch(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, item: Any, code: str, param: str
) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.conversations.items.create(conversation, items=[user(), item, user()])

    assert (refused.value.code, refused.value.param, refused.value.type) == (code, param, "invalid_request_error")
    assert sandbox.items(conversation) == []


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b'{"items": [', "invalid_json", None),
        (b'{"items": [NaN]}', "invalid_json", None),
        (b"\xff", "invalid_json", None),
        (b"[" * 100_000, "invalid_json", None),
        (b"[]", "invalid_type", None),
        (b"{}", "missing_required_parameter", "items"),
        (b'{"items": {}}', "invalid_type", "items"),
        (b'{"items": []}', "empty_array", "items"),
        (b'{"items": [' + b",".join([b"{}"] * 21) + b"]}", "array_above_max_length", "items"),
        (b'{"items": [], "idempotency_key": 1}', "unknown_parameter", "idempotency_key"),
    ],
)
def test_a_bad_body_is_refused(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, body: bytes, code: str, param: str | None
) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.post(f"/conversations/{conversation}/items", content=body, cast_to=object)

    assert (refused.value.code, refused.value.param) == (code, param)
    assert sandbox.items(conversation) == []


def test_a_conversation_with_a_bad_item_is_not_created(client: OpenAI) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.conversations.create(items=[user(status=None)])

    assert (refused.value.code, refused.value.param) == ("unknown_parameter", "items[0].status")


@pytest.mark.parametrize(
    ("body", "code"), [({}, "missing_required_parameter"), ({"metadata": []}, "invalid_type")], ids=["none", "list"]
)
def test_an_update_needs_metadata(client: OpenAI, conversation: str, body: dict[str, Any], code: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.post(f"/conversations/{conversation}", body=body, cast_to=object)

    assert (refused.value.code, refused.value.param) == (code, "metadata")


def test_a_text_above_the_limit_is_refused(client: OpenAI, conversation: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.conversations.items.create(conversation, items=[user("x" * 10_485_761)])

    assert refused.value.code == "string_above_max_length"


def test_a_reference_to_nothing_is_404_on_items(client: OpenAI, conversation: str) -> None:
    with pytest.raises(NotFoundError) as missing:
        client.conversations.items.create(conversation, items=[{"type": "item_reference", "id": "msg_1"}])

    assert missing.value.param == "items"


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ({"limit": 101}, "integer_above_max_value", "limit"),
        ({"limit": 0}, "integer_below_min_value", "limit"),
        ({"limit": "many"}, "invalid_type", "limit"),
        ({"order": "up"}, "invalid_value", "order"),
        ({"include[]": "secrets"}, "invalid_value", "include[0]"),
    ],
)
def test_a_bad_query_is_refused(
    client: OpenAI, conversation: str, query: dict[str, Any], code: str, param: str
) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.conversations.items.list(conversation, extra_query=query)

    assert (refused.value.code, refused.value.param) == (code, param)

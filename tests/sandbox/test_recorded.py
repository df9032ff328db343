"""Exchanges recorded against the real API, replayed here and compared in shape.

From openai/openai-dotnet, tests/SessionRecords (MIT), as recorded in 2025 and 2026; headers dropped.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from openai import OpenAI

from convsessions.sandbox.testing import SandboxProcess

INCLUDE = "include[]=message.input_image.image_url&include[]=web_search_call.action.sources"


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def stored(item_id: str, role: str, text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"id": item_id, "type": "message", "status": "completed", "content": content, "role": role}


CONVERSATION = {"id": "conv_1", "object": "conversation", "created_at": 1784993298, "metadata": {}}
SECOND = stored("msg_2", "user", "second item")
RECORDED: list[tuple[str, str, Any, Any]] = [
    # CanCreateGetUpdateAndDeleteConversation
    (
        "POST",
        "/conversations",
        {"metadata": {"topic": "test"}, "items": [user("tell me a joke")]},
        {**CONVERSATION, "metadata": {"topic": "test"}},
    ),
    ("GET", "/conversations/{id}", None, {**CONVERSATION, "metadata": {"topic": "test"}}),
    (
        "POST",
        "/conversations/{id}",
        {"metadata": {"topic": "updated-test", "purpose": "conversation-test"}},
        {**CONVERSATION, "metadata": {"topic": "updated-test", "purpose": "conversation-test"}},
    ),
    ("DELETE", "/conversations/{id}", None, {"id": "conv_1", "object": "conversation.deleted", "deleted": True}),
    # ConversationItemEndpointsAcceptIncludeQuery
    ("POST", "/conversations", {"items": [user("first item")]}, CONVERSATION),
    (
        "POST",
        f"/conversations/{{id}}/items?{INCLUDE}",
        {"items": [user("second item")]},
        {"object": "list", "data": [SECOND], "first_id": "msg_2", "has_more": False, "last_id": "msg_2"},
    ),
    ("GET", f"/conversations/{{id}}/items/{{last}}?{INCLUDE}", None, SECOND),
    (
        "GET",
        f"/conversations/{{id}}/items?{INCLUDE}",
        None,
        {
            "object": "list",
            "data": [SECOND, stored("msg_1", "user", "first item")],
            "first_id": "msg_2",
            "has_more": False,
            "last_id": "msg_1",
        },
    ),
    ("DELETE", "/conversations/{id}", None, {"id": "conv_1", "object": "conversation.deleted", "deleted": True}),
]


def shape(value: Any) -> Any:
    """`value` with its ids and times replaced by what they look like, keys in order."""
    if isinstance(value, dict):
        return [(key, "time" if key == "created_at" else shape(part)) for key, part in value.items()]
    if isinstance(value, list):
        return [shape(part) for part in value]
    return re.sub(r"^(conv|msg|fc|rs)_\w+$", r"\1_", value) if isinstance(value, str) else value


def test_recorded_exchanges_have_the_same_shape_here(client: OpenAI, sandbox: SandboxProcess) -> None:
    ids = {"id": "", "last": ""}
    for method, path, body, expected in RECORDED:
        send = {"GET": client.get, "POST": client.post, "DELETE": client.delete}[method]
        options: dict[str, Any] = {} if body is None else {"body": body}
        reply: Any = send(path.format(**ids), cast_to=object, **options)
        assert shape(reply) == shape(expected), (method, path)
        ids["id"] = reply["id"] if method == "POST" and path == "/conversations" else ids["id"]
        ids["last"] = reply.get("last_id", ids["last"])


ITEMS = [
    ({"role": "user", "content": "Item 4"}, stored("msg_1", "user", "Item 4")),
    ({"role": "developer", "content": "Arr"}, stored("msg_1", "developer", "Arr")),
    ({"role": "system", "content": "Arr"}, stored("msg_1", "system", "Arr")),
    (
        {"type": "function_call_output", "call_id": "call_S2X9", "output": "22 celcius and windy"},
        {
            "id": "fc_1",
            "type": "function_call_output",
            "status": "completed",
            "call_id": "call_S2X9",
            "output": "22 celcius and windy",
        },
    ),
    (
        {"type": "function_call", "arguments": '{"location":"SF"}', "call_id": "call_S2X9", "name": "get_weather"},
        {
            "id": "fc_1",
            "type": "function_call",
            "status": "completed",
            "arguments": '{"location":"SF"}',
            "call_id": "call_S2X9",
            "name": "get_weather",
        },
    ),
    (
        {"role": "assistant", "content": "Why did the scarecrow win an award?"},
        {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "annotations": [],
                    "logprobs": [],
                    "text": "Why did the scarecrow win an award?",
                }
            ],
            "role": "assistant",
        },
    ),
]


@pytest.mark.parametrize(("sent", "listed"), ITEMS)
def test_items_are_listed_as_recorded(
    client: OpenAI, conversation: str, sent: dict[str, Any], listed: dict[str, Any]
) -> None:
    client.post(f"/conversations/{conversation}/items", body={"items": [sent]}, cast_to=object)

    reply: Any = client.get(f"/conversations/{conversation}/items", cast_to=object)

    assert shape(reply["data"]) == shape([listed])

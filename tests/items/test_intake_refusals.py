"""`intake` refuses what cannot be sent: one InvalidItem that says where and why, and quotes nothing."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convsessions.exceptions import InvalidItem
from convsessions.items import codec
from tests.items.hostile import (
    SECRET,
    EndlessMapping,
    HostileMapping,
    LyingClass,
    Model,
    cyclic,
    doubling,
    nested,
    prepare,
    refusal,
    user,
)
from tests.items.strategies import json_values, messages

REFUSED: dict[str, tuple[Any, str, str]] = {
    # name: (items, path, code)
    "none": (None, "items", "not_a_list"),
    "a string": (SECRET, "items", "not_a_list"),
    "one item instead of a list": (user(SECRET), "items", "not_a_list"),
    "a generator": ((user("x") for _ in range(2)), "items", "not_a_list"),
    "a set": ({1, 2}, "items", "not_a_list"),
    "an object that lies about its class": (LyingClass(), "items", "not_a_list"),
    "an item that is null": ([user("x"), None], "items[1]", "not_an_object"),
    "an item that is a string": ([SECRET], "items[0]", "not_an_object"),
    "an item that is a list": ([[user("x")]], "items[0]", "not_an_object"),
    "an item that is a class": ([Model], "items[0]", "not_an_object"),
    "an item that lies about its class": ([LyingClass()], "items[0]", "not_json"),
    "a model that cannot be dumped": ([Model(ValueError(SECRET))], "items[0]", "not_json"),
    "a model that runs out of stack": ([Model(RecursionError(SECRET))], "items[0]", "not_json"),
    "a model that dumps to a string": ([Model(SECRET)], "items[0]", "not_json"),
    "a mapping that raises": ([HostileMapping()], "items[0]", "not_json"),
    "a mapping that never ends": ([EndlessMapping()], "items[0]", "too_large"),
    "an empty object": ([{}], "items[0].type", "missing"),
    "a type that is null and nothing else": ([{"type": None, "name": SECRET}], "items[0].type", "missing"),
    "a type that is a number": ([{"type": 1}], "items[0].type", "invalid_type"),
    "a type that is empty": ([{"type": ""}], "items[0].type", "invalid_type"),
    "a message without a role": ([{"type": "message", "content": SECRET}], "items[0].role", "missing"),
    "a message without content": ([{"role": "user"}], "items[0].content", "missing"),
    "a message with null content": ([user(None)], "items[0].content", "missing"),
    "a message with a number as content": ([user(7)], "items[0].content", "invalid_type"),
    "a message with an object as content": ([user({"text": SECRET})], "items[0].content", "invalid_type"),
    "a role that is a list": ([{"role": ["user"], "content": "x"}], "items[0].role", "invalid_type"),
    "a role that is unknown": ([{"role": "tool", "content": SECRET}], "items[0].role", "unknown_role"),
    "a role in capitals": ([{"role": "User", "content": SECRET}], "items[0].role", "unknown_role"),
    "a part that is a string": ([user([SECRET])], "items[0].content[0]", "invalid_part"),
    "a part that is null": ([user([None])], "items[0].content[0]", "invalid_part"),
    "a part without a type": ([user([{"text": SECRET}])], "items[0].content[0].type", "invalid_part"),
    "a text part without text": ([user([{"type": "input_text"}])], "items[0].content[0].text", "missing"),
    "a text part with null": ([user([{"type": "input_text", "text": None}])], "items[0].content[0].text", "missing"),
    "a text part with a number": (
        [user("x"), user([{"type": "input_text", "text": "x"}, {"type": "input_text", "text": 1}])],
        "items[1].content[1].text",
        "invalid_type",
    ),
    "input text from the assistant": (
        [{"role": "assistant", "content": [{"type": "input_text", "text": SECRET}]}],
        "items[0].content[0]",
        "invalid_part",
    ),
    "a call without its id": (
        [{"type": "function_call", "name": "f", "arguments": "{}"}],
        "items[0].call_id",
        "missing",
    ),
    "a call with arguments as an object": (
        [{"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": 1}}],
        "items[0].arguments",
        "invalid_type",
    ),
    "an output with parts that are strings": (
        [{"type": "function_call_output", "call_id": "c", "output": [SECRET]}],
        "items[0].output[0]",
        "invalid_part",
    ),
    "a placeholder where an id is required": (
        [{"type": "web_search_call", "id": "__fake_id__", "action": {}}],
        "items[0].id",
        "missing",
    ),
    "an id that is a list": (
        [{"type": "mcp_list_tools", "id": [1], "server_label": "s", "tools": []}],
        "items[0].id",
        "invalid_type",
    ),
    "a boolean that is a number": (
        [{"type": "mcp_approval_response", "approval_request_id": "a", "approve": 1}],
        "items[0].approve",
        "invalid_type",
    ),
    "not a number": ([{"type": "x", "a": [float("nan")]}], "items[0].a[0]", "not_finite"),
    "an infinity": ([{"type": "x", "a": {"b": float("-inf")}}], "items[0].a.b", "not_finite"),
    "half a surrogate pair": (
        [user([{"type": "input_text", "text": "a\ud83d"}])],
        "items[0].content[0].text",
        "surrogate",
    ),
    "a surrogate pair in two characters": ([user("\ud83d\ude00")], "items[0].content", "surrogate"),
    "half a surrogate pair in a key": ([{"type": "x", "a": {"\udc00": 1}}], "items[0].a", "surrogate"),
    "a key that is a number": ([{"type": "x", "a": {1: 2}}], "items[0].a", "not_json"),
    "a key that is null": ([{None: 2}], "items[0]", "not_json"),
    "bytes": ([user(SECRET.encode())], "items[0].content", "not_json"),
    "a set in an item": ([{"type": "x", "a": {SECRET}}], "items[0].a", "not_json"),
    "a generator in an item": ([user(part for part in [SECRET])], "items[0].content", "not_json"),
    "a time": ([{"type": "x", "at": dt.datetime(2026, 1, 1)}], "items[0].at", "not_json"),
    "a complex number": ([{"type": "x", "a": 1j}], "items[0].a", "not_json"),
    "an integer of 4301 digits": ([{"type": "x", "a": -(10**4300)}], "items[0].a", "too_large"),
    "a cycle": ([{"type": "x", "a": cyclic()}], "items[0].a" + "[0]" * 11 + "...", "too_deep"),
    "64 levels below an item": ([{"type": "x", "arguments": nested(64)}], "items[0].arguments", "too_deep"),
    "a hundred thousand levels": ([{"type": "x", "arguments": nested(100_000)}], "items[0].arguments", "too_deep"),
    "two to the power of sixty values": ([{"type": "x", "a": doubling(60)}], "items[0]", "too_large"),
    "a key that no field of the API has": ([{"type": "x", SECRET: {"b": b""}}], "items[0].?.b", "not_json"),
    "keys that are the caller's own": ([{"type": "x", "arguments": {"secret": b""}}], "items[0].arguments", "not_json"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_sent_is_refused_by_path_and_code_and_never_quoted(name: str) -> None:
    items, path, code = REFUSED[name]

    assert refusal(items) == (path, code)


def test_one_item_more_than_the_limit_is_refused_before_any_is_read() -> None:
    assert refusal([None, None, None], max_items=2) == ("items", "too_many_items")


@pytest.mark.parametrize("value", ["x" * 100_000, 10**4000, {"k" * 100_000: 1}], ids=["strings", "integers", "objects"])
def test_what_is_large_only_as_json_is_refused_before_it_is_encoded(value: Any, monkeypatch: Any) -> None:
    def never(_: Any) -> str:
        raise AssertionError("encoded")

    monkeypatch.setattr(codec, "encode", never)

    assert refusal([{"type": "x", "a": [value] * 1000}]) == ("items[0]", "too_large")


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.sampled_from([Model, Model(1)]),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "output", "id"]) | st.integers() | st.text(), inner
        )
        | st.builds(Model, inner)
    ),
)


@given(anything | st.lists(anything | json_values | messages))
def test_nothing_but_invalid_item_escapes(items: object) -> None:
    try:
        intake = prepare(items)
    except InvalidItem as refused:
        str(refused).encode()  # printable, whatever the keys are
    else:
        assert all(json.loads(item.text) is not None for item in intake.items)

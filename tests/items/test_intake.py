"""`intake`: whatever a caller gives becomes items that can be sent, or one InvalidItem that says where and why."""

from __future__ import annotations

import datetime as dt
import enum
import json
import types
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from convsessions.exceptions import InvalidItem
from convsessions.items import codec
from convsessions.items.intake import Intake, PreparedItem, prepare_items
from convsessions.items.plain import plain_object
from convsessions.items.sanitise import is_unsendable, sanitise
from tests.items.strategies import item_lists, json_values, messages

SECRET = "sk-the-content-of-an-item"
KIB = 1024


def prepare(items: object, *, max_items: int = 100, max_item_bytes: int = 64 * KIB) -> Intake:
    return prepare_items(items, max_items=max_items, max_item_bytes=max_item_bytes)


def refusal(items: object, **limits: int) -> tuple[str, str]:
    with pytest.raises(InvalidItem) as caught:
        prepare(items, **limits)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "the error of the caller's object may quote content"
    return caught.value.field, caught.value.code


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def nested(levels: int) -> list[Any]:
    """Arrays inside one another, `levels` of them."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def doubling(levels: int) -> list[Any]:
    """Arrays of the same array twice: small in memory, 2**levels values as JSON."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value, value]
    return value


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


class Model:
    """What pydantic's models have in common with the ones of a test."""

    def __init__(self, dumped: Any) -> None:
        self.dumped = dumped

    def model_dump(self, *, exclude_unset: bool) -> Any:
        if isinstance(self.dumped, Exception):
            raise self.dumped
        return self.dumped


class HostileMapping(OrderedDict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError(SECRET)


class EndlessMapping(OrderedDict[str, Any]):
    def items(self) -> Any:
        number = 0
        while True:
            yield f"key_{number}", number
            number += 1


class LyingClass:
    @property
    def __class__(self) -> Any:
        raise RuntimeError(SECRET)


class Colour(str, enum.Enum):  # noqa: UP042 - the old spelling is the one that users have
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


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


def test_as_many_items_as_the_limit_are_taken() -> None:
    assert len(prepare([user("a"), user("b")], max_items=2).items) == 2


def test_an_item_is_measured_in_bytes_of_json_as_it_is_sent() -> None:
    item = user("é" * 10)
    size = len('{"role":"user","content":""}') + 10 * len("\\u00e9")

    assert len(prepare([item], max_item_bytes=size).items[0].text) == size
    assert refusal([item], max_item_bytes=size - 1) == ("items[0]", "too_large")


def test_what_is_not_sent_does_not_count_towards_the_size() -> None:
    item = {**user("x"), "provider_data": {"raw": "y" * 10_000}}

    assert prepare([item], max_item_bytes=64).items[0].text == '{"role":"user","content":"x"}'


def test_sixty_three_levels_below_an_item_are_taken() -> None:
    item = {"type": "x", "a": nested(63)}

    assert codec.decode(prepare([item]).items[0].text) == item


def test_an_integer_of_4300_digits_is_taken() -> None:
    item = {"type": "x", "a": 10**4300 - 1}

    assert codec.decode(prepare([item]).items[0].text) == item


def test_no_items_are_no_items() -> None:
    assert prepare([]) == Intake(items=[], digest=codec.digest("[]"), omitted=0)


def test_an_item_is_sent_sanitised_with_its_type_and_call_id() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "status": None}

    assert prepare([call]).items == [
        PreparedItem(
            text='{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}', type="function_call", call_id="c"
        )
    ]


def test_a_mapping_with_role_and_content_is_a_message() -> None:
    assert prepare([user("x")]).items == [
        PreparedItem(text='{"role":"user","content":"x"}', type="message", call_id="")
    ]


def test_a_bare_id_is_a_reference_and_keeps_it() -> None:
    assert prepare([{"id": "msg_1", "type": None, "status": None}]).items == [
        PreparedItem(text='{"id":"msg_1"}', type="item_reference", call_id="")
    ]


def test_types_that_are_not_known_yet_are_let_through() -> None:
    item = {"type": "telepathy_call", "call_id": "t", "waves": [1, 2.5, {"deep": None}]}

    prepared = prepare([item]).items[0]

    assert (prepared.type, prepared.call_id, codec.decode(prepared.text)) == ("telepathy_call", "t", item)


def test_parts_that_are_not_known_yet_are_let_through() -> None:
    item = user([{"type": "input_smell", "note": "roses"}])

    assert codec.decode(prepare([item]).items[0].text) == item


def test_output_of_a_shell_has_parts_without_a_type() -> None:
    item = {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "x", "stderr": ""}]}

    assert codec.decode(prepare([item]).items[0].text) == item


def test_tuples_and_other_mappings_are_read_as_lists_and_objects() -> None:
    item = types.MappingProxyType({"role": "user", "content": (OrderedDict(type="input_text", text="x"),)})

    assert prepare((item,)) == prepare([user([{"type": "input_text", "text": "x"}])])


@pytest.mark.parametrize("value", ["x" * 100_000, 10**4000, {"k" * 100_000: 1}], ids=["strings", "integers", "objects"])
def test_what_is_large_only_as_json_is_refused_before_it_is_encoded(value: Any, monkeypatch: Any) -> None:
    def never(_: Any) -> str:
        raise AssertionError("encoded")

    monkeypatch.setattr(codec, "encode", never)

    assert refusal([{"type": "x", "a": [value] * 1000}]) == ("items[0]", "too_large")


def test_enums_are_read_as_the_values_they_are() -> None:
    item = {"type": "x", "colour": Colour.RED, "level": Level.HIGH, Colour.RED: 1}

    assert prepare([item]).items[0].text == '{"type":"x","colour":"red","level":3,"red":1}'


class Text(str):  # noqa: SLOT000 - the kind of class that a caller may have
    def isascii(self) -> bool:
        raise RuntimeError(SECRET)

    def __len__(self) -> int:
        raise RuntimeError(SECRET)


class Number(int):
    def bit_length(self) -> int:
        raise RuntimeError(SECRET)


class Real(float):
    pass


def test_values_are_copied_as_exactly_what_json_has() -> None:
    given = {"type": "x", "a": [Text("x"), Number(1), Real(1.5), True, None, (1,), OrderedDict(b=1)]}

    copied = plain_object(given, path="items[0]", limit=KIB)

    assert [type(value) for value in copied["a"]] == [str, int, float, bool, type(None), list, dict]
    assert copied == {"type": "x", "a": ["x", 1, 1.5, True, None, [1], {"b": 1}]}


def test_models_are_dumped_also_inside_items() -> None:
    part = ResponseOutputText(type="output_text", text="x", annotations=[])
    reply = ResponseOutputMessage(id="msg_1", type="message", role="assistant", status="completed", content=[part])

    given_as_models = prepare([reply, {"role": "assistant", "content": [part]}, Model(user("y"))])

    assert [json.loads(item.text) for item in given_as_models.items] == [
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "x", "annotations": []}],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": []}]},
        user("y"),
    ]


def test_models_are_dumped_under_the_names_of_the_wire() -> None:
    call = ResponseFunctionToolCall.model_validate(
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "async": True}
    )

    assert json.loads(prepare([call]).items[0].text)["async"] is True


def test_reasoning_that_the_api_refuses_is_counted_and_not_sent() -> None:
    thoughts = {"type": "reasoning", "id": "__fake_id__", "summary": []}

    intake = prepare([user("a"), thoughts, {**thoughts, "id": "rs_1"}, {**thoughts, "encrypted_content": "e"}])

    assert intake.omitted == 1
    assert [json.loads(item.text).get("id") for item in intake.items] == [None, "rs_1", None]


def test_the_digest_tells_types_apart_that_compare_equal_in_python() -> None:
    digests = {prepare([{"type": "x", "a": value}]).digest for value in (1, 1.0, True, "1", [1])}

    assert len(digests) == 5


def test_the_digest_covers_what_is_not_sent() -> None:
    digests = {prepare([{**user("x"), "id": value}]).digest for value in ("msg_1", "msg_2", None)}

    assert len(digests) == 3


@given(item_lists)
def test_the_same_body_gives_the_same_intake_and_stays_as_it_was(items: list[dict[str, Any]]) -> None:
    copy = json.loads(json.dumps(items))

    assert prepare(items) == prepare(copy)
    assert json.dumps(items) == json.dumps(copy)


@given(item_lists)
def test_every_item_of_a_known_type_is_taken_as_it_is_sanitised(items: list[dict[str, Any]]) -> None:
    clean = [sanitise(item) for item in items]

    intake = prepare(items)

    assert [item.text for item in intake.items] == [codec.encode(item) for item in clean if not is_unsendable(item)]
    assert intake.omitted == sum(map(is_unsendable, clean))


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

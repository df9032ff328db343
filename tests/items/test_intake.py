"""`intake`: whatever a caller gives that can be sent becomes items, exactly."""

from __future__ import annotations

import json
import types
from collections import OrderedDict
from typing import Any

from hypothesis import given
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from convsessions.items import codec
from convsessions.items.intake import Intake, PreparedItem
from convsessions.items.plain import plain_object
from convsessions.items.sanitise import is_unsendable, sanitise
from tests.items.hostile import KIB, SECRET, Colour, Level, Model, nested, prepare, refusal, user
from tests.items.strategies import item_lists


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
            text='{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}',
            type="function_call",
            call_id="c",
            original=codec.encode(call),
        )
    ]


def test_a_mapping_with_role_and_content_is_a_message() -> None:
    assert prepare([user("x")]).items == [
        PreparedItem(text='{"role":"user","content":"x"}', type="message", call_id="")
    ]


def test_a_bare_id_is_a_reference_and_keeps_it() -> None:
    assert prepare([{"id": "msg_1", "type": None, "status": None}]).items == [
        PreparedItem(
            text='{"id":"msg_1"}',
            type="item_reference",
            call_id="",
            original='{"id":"msg_1","type":null,"status":null}',
        )
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

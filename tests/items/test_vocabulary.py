"""What is known about types of items, compared with the types of the installed `openai` package."""

from __future__ import annotations

import json
from typing import Any, Literal, Required, TypedDict, get_args, get_type_hints

import pytest
from openai.types.responses import (
    response_input_file_param,
    response_input_image_param,
    response_input_text_param,
    response_output_refusal_param,
    response_output_text_param,
    response_reasoning_item_param,
)
from openai.types.responses.easy_input_message_param import EasyInputMessageParam
from openai.types.responses.response_includable import ResponseIncludable

from convsessions.items.kinds import KEEPS_ID, NULLABLE, PARTS, REQUIRED, ROLES, UNREQUIRED, Vocabulary, with_types
from convsessions.remote import vocabulary
from convsessions.remote.calls import INCLUDE
from convsessions.remote.vocabulary import item_types
from tests.items.hostile import prepare, refusal

LESS = {
    ("reasoning", "id"): "reported: with encrypted_content it does without",
    ("computer_call", "pending_safety_checks"): "items of older models have none; nobody reported a refusal",
}
"""Fields that the client's types require and our table does not, and why."""


def test_the_tables_know_every_type_that_the_client_knows():
    """Not the reverse: an older client may lack some."""
    assert set(item_types()) - set(REQUIRED) == set()


@pytest.mark.parametrize("kind", sorted(set(item_types()) & set(REQUIRED)))
def test_a_type_requires_what_the_client_requires_of_it(kind):
    documented = {
        name: set(kinds)
        for name, kinds in item_types()[kind].items()
        if name not in UNREQUIRED and (kind, name) not in LESS and name not in NULLABLE.get(kind, ())
    }
    # A null is dropped before a field is looked at, so that it cannot stand for a required one.
    assert {name: set(kinds) for name, kinds in REQUIRED[kind].items()} == {
        name: kinds - {"null"} for name, kinds in documented.items()
    }


def test_the_fields_that_may_be_null_are_those_of_the_client():
    nullable = {
        kind: frozenset(name for name, kinds in fields.items() if "null" in kinds)
        for kind, fields in item_types().items()
    }
    # The client's type of these arguments is any object at all, which nobody means to be null.
    assert nullable.pop("tool_search_call") == {"arguments"}
    assert {kind: names for kind, names in nullable.items() if names} == NULLABLE


def test_ids_are_kept_where_the_client_requires_them():
    assert {kind for kind, fields in item_types().items() if "id" in fields} == KEEPS_ID


def test_less_is_asked_for_only_where_the_client_asks_for_it():
    assert [(kind, name) for kind, name in LESS if name not in item_types()[kind]] == []


PART_TYPES = (
    response_input_text_param.ResponseInputTextParam,
    response_input_image_param.ResponseInputImageParam,
    response_input_file_param.ResponseInputFileParam,
    response_output_text_param.ResponseOutputTextParam,
    response_output_refusal_param.ResponseOutputRefusalParam,
    response_reasoning_item_param.Summary,
    response_reasoning_item_param.Content,
)
PARTS_LESS = {
    ("output_text", "annotations"): "recorded: the API adds empty ones",
    ("output_text", "logprobs"): "recorded: the API adds empty ones",
    ("input_image", "detail"): "documented: it has a default",
}


@pytest.mark.parametrize("part", PART_TYPES, ids=lambda part: part.__name__)
def test_a_part_requires_what_the_client_requires_of_it(part):
    ((kind, fields),) = vocabulary.required_fields(part).items()

    assert PARTS[kind] == {name: kinds for name, kinds in fields.items() if (kind, name) not in PARTS_LESS}


def test_roles_are_those_of_the_client():
    (role,) = get_args(get_type_hints(EasyInputMessageParam, include_extras=True)["role"])

    assert set(get_args(role)) == ROLES


def test_every_include_that_the_client_knows_is_asked_for():
    assert set(INCLUDE) == set(get_args(ResponseIncludable))


class Telepathy(TypedDict, total=False):
    """A type of a client that is newer than our tables."""

    type: Required[Literal["telepathy_call"]]
    id: Required[str]
    waves: Required[list[int]]
    result: Required[str | None]
    status: Required[Literal["done"]]
    note: str


@pytest.fixture
def newer() -> Vocabulary:
    return with_types(vocabulary.required_fields(Telepathy))


def test_a_type_that_only_a_newer_client_knows_is_checked_by_its_types(newer):
    assert refusal([{"type": "telepathy_call", "waves": []}], types=newer) == ("items[0].id", "missing")
    assert refusal([{"type": "telepathy_call", "id": "t_1", "waves": "x"}], types=newer) == (
        "items[0].waves",
        "invalid_type",
    )


def test_a_type_that_only_a_newer_client_knows_keeps_its_id_and_the_nulls_that_it_must_have(newer):
    item = {"type": "telepathy_call", "id": "t_1", "waves": [1], "result": None}

    intake = prepare([{**item, "note": None}], types=newer, refuse_unknown=True)

    assert json.loads(intake.items[0].text) == item
    assert intake.unknown == set()


ALIEN: dict[str, Any] = {"type": "alien_call", "id": "a_1", "body": {"n": 1}}


def test_a_type_that_nobody_knows_is_sent_and_named():
    assert prepare([ALIEN, ALIEN, {"type": "The user's own words"}]).unknown == {"alien_call", "?"}


def test_a_type_that_nobody_knows_can_be_refused():
    assert refusal([{"role": "user", "content": "x"}, ALIEN], refuse_unknown=True) == ("items[1].type", "unknown_type")

"""Bad input is found at the edge, with the path of the field, and nothing is recorded."""

from __future__ import annotations

import io
import json
import logging

import pytest
from rest_framework.test import APIRequestFactory

from convsessions.api import parsing, problems
from convsessions.models import ConversationSession, WriteIntent

from .conftest import code_of, message

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "do-not-repeat-me"


def body(*items) -> bytes:
    return json.dumps({"items": list(items)}).encode()


def part(text) -> dict:
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


BODIES = {
    "empty": (b"", 422, "missing", "items"),
    "not JSON": (f'{{"items": [{SECRET}'.encode(), 400, "invalid_json", None),
    "nothing but a blank": (b" ", 400, "invalid_json", None),
    "a byte order mark": (b"\xef\xbb\xbf" + body(), 400, "invalid_json", None),
    "not UTF-8": (b'{"items": ["\xff' + SECRET.encode() + b'"]}', 400, "invalid_utf8", None),
    "UTF-16": (body().decode().encode("utf-16"), 400, "invalid_utf8", None),
    "NaN": (b'{"items": [{"role": "user", "content": NaN}]}', 400, "not_finite", None),
    "Infinity": (b'{"items": [-Infinity]}', 400, "not_finite", None),
    "a nesting bomb": (b"[" * 200_000, 400, "too_deep", None),
    "a nesting bomb of objects": (b'{"a":' * 200_000, 400, "too_deep", None),
    "too many digits": (b'{"items": [' + b"9" * 5000 + b"]}", 400, "number_too_large", None),
    "a list": (b"[]", 422, "not_an_object", None),
    "null": (b"null", 422, "not_an_object", None),
    "a string": (b'"items"', 422, "not_an_object", None),
    "no items": (b"{}", 422, "missing", "items"),
    "an unknown field": (b'{"items": [], "item": 1}', 422, "unknown_field", "item"),
    "an unknown field with a strange name": (f'{{"{SECRET}": 1}}'.encode(), 422, "unknown_field", "?"),
    "items is null": (b'{"items": null}', 422, "not_a_list", "items"),
    "items is an object": (b'{"items": {}}', 422, "not_a_list", "items"),
    "an item is a string": (body(SECRET), 422, "not_an_object", "items[0]"),
    "an empty object": (body(message(), {}), 422, "missing", "items[1].type"),
    "an unknown role": (body({"role": SECRET, "content": "x"}), 422, "unknown_role", "items[0].role"),
    "content of a wrong type": (body({"role": "user", "content": 3}), 422, "invalid_type", "items[0].content"),
    "a text of a wrong type": (body(part(3)), 422, "invalid_type", "items[0].content[0].text"),
    "a part that is none": (body({"role": "user", "content": [3]}), 422, "invalid_part", "items[0].content[0]"),
    "an infinite number": (b'{"items": [{"role": "user", "content": 1e999}]}', 422, "not_finite", "items[0].content"),
    "half a surrogate pair": (body(part("\ud800")), 422, "surrogate", "items[0].content[0].text"),
    "nested too deeply": (
        b'{"items": [{"role": "user", "content": ' + b"[" * 100 + b"]" * 100 + b"}]}", 422, "too_deep", None,
    ),
    "an item that is too large": (body(message("x" * 2_000_000)), 413, "too_large", "items[0]"),
    "too many items": (body(*[message()] * 4), 413, "too_many_items", "items"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_is_refused_with_the_path_of_the_field(owner, session, quick, caplog, name):
    quick |= {"MAX_ITEMS_PER_WRITE": 3, "MAX_ITEM_BYTES": 256 * 1024}
    content, status, code, field = BODIES[name]

    with caplog.at_level(logging.DEBUG):
        response = owner.generic("POST", f"/api/sessions/{session.pk}/items/", content, "application/json")

    assert code_of(response) == (status, code)
    if name != "nested too deeply":
        assert response.json().get("field") == field
    assert SECRET not in response.content.decode()
    assert SECRET not in caplog.text
    assert not WriteIntent.objects.exists()


def test_a_body_that_is_too_large_is_not_even_read(owner, session, monkeypatch):
    monkeypatch.setattr(parsing, "MAX_BODY_BYTES", 100)

    response = owner.post(f"/api/sessions/{session.pk}/items/", {"items": [message("x" * 100)]}, format="json")

    assert code_of(response) == (413, "body_too_large")


def test_a_body_that_is_longer_than_it_said_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(parsing, "MAX_BODY_BYTES", 100)
    stream, request = io.BytesIO(b" " * 1000), APIRequestFactory().get("/")

    with pytest.raises(problems.Refusal) as refused:
        parsing.StrictJSONParser().parse(stream, parser_context={"request": request})

    assert (refused.value.status_code, stream.tell()) == (413, 101)


def test_a_body_larger_than_djangos_limit_for_forms_is_fine(owner, session, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100

    response = owner.post(f"/api/sessions/{session.pk}/items/", {"items": [message("x" * 200)]}, format="json")

    assert response.status_code == 202


SESSIONS = {
    "a key that is a number": ({"key": 3}, "invalid", "key"),
    "an empty key": ({"key": ""}, "invalid", "key"),
    "a key that is too long": ({"key": "k" * 256}, "invalid", "key"),
    "a key with a line break": ({"key": "a\nb"}, "invalid", "key"),
    "metadata that is a list": ({"metadata": []}, "invalid", "metadata"),
    "too many pairs": ({"metadata": {str(number): "" for number in range(17)}}, "invalid", "metadata"),
    "a value that is a number": ({"metadata": {"a": 1}}, "invalid", "metadata.a"),
    "a value that is too long": ({"metadata": {"a": "b" * 513}}, "invalid", "metadata.a"),
    "an owner": ({"owner": 1}, "unknown_field", "owner"),
    "a conversation that is a number": ({"conversation_id": 1}, "invalid", "conversation_id"),
    "a conversation with a strange id": ({"conversation_id": "conv\n1"}, "invalid", "conversation_id"),
    "an item that is none": ({"items": [{}]}, "missing", "items[0].type"),
    "items that are no list": ({"items": {}}, "not_a_list", "items"),
    "items that are null": ({"items": None}, "not_a_list", "items"),
    "half a surrogate pair in metadata": ({"metadata": {"a": "\ud800"}}, "invalid", "metadata.a"),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_bad_session_is_refused_with_the_path_of_the_field(owner, name):
    given, code, field = SESSIONS[name]

    response = owner.generic("POST", "/api/sessions/", json.dumps(given), "application/json")

    assert code_of(response) == (422, code)
    assert response.json()["field"] == field
    assert not ConversationSession.objects.exists()


@pytest.mark.parametrize("verb", ["pop", "clear", "verify"])
def test_requests_without_fields_take_none(owner, session, verb):
    response = owner.post(f"/api/sessions/{session.pk}/{verb}/", {"force": True}, format="json")

    assert code_of(response) == (422, "unknown_field")
    assert not WriteIntent.objects.exists()

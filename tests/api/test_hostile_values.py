"""Values that some database, or some encoding, cannot hold: every parameter answers 4xx and names itself."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from convsessions import operations
from convsessions.exceptions import InvalidInput
from convsessions.models import ConversationSession

from .conftest import code_of, message

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = {
    "NUL": "a\x00b",
    "half a surrogate pair": "a\ud800",
    "four bytes a character": "\U0001f600" * 20,
    "a line break": "a\nb",
    "blanks": "   ",
    "nothing": "",
    "very long": "x" * 70_000,
    "longer than a packet": "x" * 17_000_000,
}
OTHERS = {
    "a huge integer": 10**400,
    "2**63": 2**63,
    "-1": -1,
    "true": True,
    "a list": [],
    "an object": {},
    "a float": 1.5,
    "null": None,
    "nested": json.loads("[" * 60 + "]" * 60),
}
VALUES = TEXTS | OTHERS


UNSTORABLE = ("NUL", "half a surrogate pair", "blanks", "nothing", "very long", "longer than a packet", *OTHERS)
"""Values that no reason may have."""


def post(client, path, fields, **headers):
    return client.generic("POST", path, json.dumps(fields), "application/json", headers=headers)


def names_the_field(response, field: str) -> bool:
    """Whether it was taken, or refused as a fault of the request that names `field` or a part of it."""
    if response.status_code < 400:
        return True
    return response.status_code in {413, 422} and response.json()["field"].split(".")[0].split("[")[0] == field


@pytest.mark.parametrize("name", UNSTORABLE)
def test_a_reason_that_a_database_cannot_hold(operator, ambiguous, name):
    for verb, rest in (("reconcile", {}), ("resolve", {"resolution": "abandon", "evidence": "x"})):
        response = post(operator, f"/api/writes/{ambiguous.pk}/{verb}/", {"reason": VALUES[name], **rest})
        assert (response.status_code, response.json()["field"]) == (422, "reason")
    assert not ambiguous.reconciliations.exclude(resolution="").exists()


@pytest.mark.parametrize("name", ["NUL", "half a surrogate pair", "very long"])
def test_a_reason_given_in_python(session, name):
    write = operations.append_items(session.pk, [message()])
    for act in (operations.cancel_write, operations.retry_write):
        with pytest.raises(InvalidInput) as refused:
            act(write.pk, reason=VALUES[name])
        assert refused.value.field == "reason"


@pytest.mark.parametrize("name", ["four bytes a character", "a line break"])
def test_a_reason_that_is_unusual(operator, ambiguous, name):
    assert post(operator, f"/api/writes/{ambiguous.pk}/reconcile/", {"reason": f"r {VALUES[name]}"}).status_code < 300
    assert ambiguous.reconciliations.get(resolution="recheck").reason == f"r {VALUES[name]}"


@pytest.mark.parametrize("name", VALUES)
def test_other_fields_of_a_resolution(operator, ambiguous, name):
    for field in ("resolution", "evidence"):
        fields = {"resolution": "abandon", "reason": "r", "evidence": "e"} | {field: VALUES[name]}
        response = post(operator, f"/api/writes/{ambiguous.pk}/resolve/", fields)
        assert names_the_field(response, field) or response.json()["code"] == "evidence_changed"


@pytest.mark.parametrize("name", VALUES)
def test_the_fields_of_a_session(owner, sandbox, name):
    value = VALUES[name]
    for field in ("key", "metadata", "conversation_id", "items"):
        assert names_the_field(post(owner, "/api/sessions/", {field: value}), field)
    assert names_the_field(post(owner, "/api/sessions/", {"metadata": {"a": value}}), "metadata")
    assert names_the_field(post(owner, "/api/sessions/", {"metadata": {str(value)[:64]: "x"}}), "metadata")


@pytest.mark.parametrize("name", VALUES)
def test_the_fields_of_a_change(owner, session, name):
    for field in ("key", "metadata"):
        body = json.dumps({field: VALUES[name]})
        assert names_the_field(owner.generic("PATCH", f"/api/sessions/{session.pk}/", body, "application/json"), field)


@pytest.mark.parametrize("name", VALUES)
def test_the_fields_of_writes(owner, session, name):
    value, path = VALUES[name], f"/api/sessions/{session.pk}"
    for field in ("items", "on_refusal"):
        assert names_the_field(post(owner, f"{path}/items/", {"items": [message()], field: value}), field)
    for item in (
        {"role": value, "content": "x"},
        {"role": "user", "content": value},
        {"type": value},
        {"type": "x", "call_id": value},
    ):
        assert names_the_field(post(owner, f"{path}/items/", {"items": [item]}), "items")
    assert names_the_field(post(owner, f"{path}/clear/", {"erase": value}), "erase")


@pytest.mark.parametrize("name", sorted(TEXTS.keys() - {"a line break"}))
def test_headers(owner, session, name):
    value = TEXTS[name].encode("utf-8", "surrogatepass").decode("latin-1")[:200_000]
    path = f"/api/sessions/{session.pk}/"
    for header in ("Idempotency-Key", "If-Match", "If-None-Match", "Prefer"):
        assert post(owner, f"{path}pop/", {}, **{header: value}).status_code < 500
        assert owner.get(path, headers={header: value}).status_code < 500


QUERIES = {
    "/api/sessions/": ("key", "state", "cursor", "limit", "created_after", "needs_attention", "deleted"),
    "/api/sessions/{}/writes/": ("state", "kind", "cursor", "limit", "idempotency_key", "needs_attention"),
    "/api/sessions/{}/items/": ("limit", "order", "after", "latest"),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("path", QUERIES)
def test_queries(owner, saved, name, path):
    for parameter in QUERIES[path]:
        value = quote(TEXTS[name][:5000].encode("utf-8", "surrogatepass"))
        response = owner.get(f"{path.format(saved.pk)}?{parameter}={value}")
        assert names_the_field(response, parameter)


MOMENTS = (
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00%2B14:00",
    "9999-12-31T23:59:59-14:00",
    "9999-12-31T23:59:59Z",
    "2026-02-30T00:00:00Z",
    "9" * 400,
)


@pytest.mark.parametrize("value", MOMENTS)
def test_moments_at_the_ends_of_time(owner, session, value):
    for path in ("/api/sessions/", f"/api/sessions/{session.pk}/writes/"):
        for parameter in ("created_after", "created_before"):
            assert names_the_field(owner.get(f"{path}?{parameter}={value}"), parameter)


def test_the_beginning_of_time_in_a_zone_that_is_behind(owner, settings):
    settings.USE_TZ, settings.TIME_ZONE = False, "America/New_York"
    response = owner.get("/api/sessions/?created_after=0001-01-01T00:00:00Z")
    assert (response.status_code, response.json()["field"]) == (422, "created_after")


@pytest.mark.parametrize("value", ["%00", "a%00b", "%ED%A0%80", "1", "9" * 400, "%F0%9F%98%80", "{x}", "-" * 36])
def test_ids(owner, session, value):
    for path in (f"/api/sessions/{value}/", f"/api/writes/{value}/", f"/api/sessions/{value}/items/"):
        assert owner.get(path).status_code == 404


DUPLICATES = {
    "a field": (b'{"key": "a", "key": "b"}', "key"),
    "a pair of metadata": (b'{"metadata": {"a": "1", "a": "2"}}', "a"),
    "a field of an item": (b'{"items": [{"role": "user", "role": "system", "content": "x"}]}', "role"),
    "a name of somebody's own": (b'{"items": [{"Some Name": 1, "Some Name": 1}]}', "?"),
}


@pytest.mark.parametrize("name", DUPLICATES)
def test_a_name_that_stands_twice_in_an_object(owner, name):
    body, field = DUPLICATES[name]
    response = owner.generic("POST", "/api/sessions/", body, "application/json")
    assert code_of(response) == (400, "duplicate_name")
    assert response.json()["field"] == field
    assert not ConversationSession.objects.exists()

"""What every operation has in common, tried with each one that the OpenAPI document lists."""

from __future__ import annotations

import re

import pytest
from rest_framework.authentication import BasicAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.test import APIClient
from rest_framework.throttling import SimpleRateThrottle

from convsessions import operations
from convsessions.api import endpoint, parsing
from convsessions.models import ConversationSession, WriteIntent

from .conftest import code_of, message
from .documented import operations as documented_operations

pytestmark = pytest.mark.django_db(transaction=True)

KNOWN = {operation["operationId"]: (key, operation) for key, operation in documented_operations().items()}
GUARDED = sorted(KNOWN.keys() - {"getHealth"})
TAKING_A_BODY = [name for name in GUARDED if "415" in KNOWN[name][1]["responses"]]


@pytest.fixture
def write(session) -> WriteIntent:
    return operations.append_items(session.pk, [message()])


@pytest.fixture
def root(write, django_user_model) -> APIClient:
    """Somebody who may do everything."""
    client = APIClient()
    client.force_authenticate(django_user_model.objects.create_superuser("root"))
    return client


def ask(client: APIClient, name: str, write: WriteIntent, body: bytes = b"", kind: str = "application/json", **headers):
    (path, method), _ = KNOWN[name]
    path = re.sub(r"\{session_id\}", str(write.session_id), path).replace("{write_id}", str(write.pk))
    before = [list(model.objects.values()) for model in (ConversationSession, WriteIntent)]
    response = client.generic(method.upper(), path, body, kind, headers=headers)
    assert [list(model.objects.values()) for model in (ConversationSession, WriteIntent)] == before
    return response


@pytest.mark.parametrize("name", GUARDED)
def test_401_without_a_login(name, write, monkeypatch):
    monkeypatch.setattr(endpoint.Endpoint, "authentication_classes", [BasicAuthentication])

    response = ask(APIClient(), name, write)

    assert code_of(response) == (401, "not_authenticated")
    assert response["WWW-Authenticate"] == 'Basic realm="api"'


class Nobody(BasePermission):
    def has_permission(self, request, view):
        return False


@pytest.mark.parametrize("name", GUARDED)
def test_403_by_the_permission_classes(name, root, write, quick):
    quick["PERMISSION_CLASSES"] = [f"{__name__}.Nobody"]

    assert code_of(ask(root, name, write)) == (403, "permission_denied")


@pytest.mark.parametrize("name", GUARDED)
def test_406_for_a_client_that_wants_no_json(name, root, write):
    assert code_of(ask(root, name, write, Accept="text/html")) == (406, "not_acceptable")


class Never(SimpleRateThrottle):
    rate = "1/day"

    def allow_request(self, request, view):
        return False

    def wait(self):
        return 7


@pytest.mark.parametrize("name", GUARDED)
def test_429_by_the_throttle_classes(name, root, write, monkeypatch):
    monkeypatch.setattr(endpoint.Endpoint, "throttle_classes", [Never])

    response = ask(root, name, write)

    assert (code_of(response), response["Retry-After"]) == ((429, "throttled"), "7")


BODIES = {
    "not JSON": (b"{", "application/json", 400, "invalid_json"),
    "not UTF-8": (b'"\xff"', "application/json", 400, "invalid_utf8"),
    "too large": (b" " * 101, "application/json", 413, "body_too_large"),
    "a form": (b"a=1", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
    "no object": (b"[]", "application/json", 422, "not_an_object"),
    "an unknown field": (b'{"unknown": 1}', "application/json", 422, "unknown_field"),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", TAKING_A_BODY)
def test_a_body_that_cannot_be_taken(name, body, root, write, monkeypatch):
    monkeypatch.setattr(parsing, "MAX_BODY_BYTES", 100)
    content, kind, status, code = BODIES[body]

    assert code_of(ask(root, name, write, content, kind)) == (status, code)


def test_only_reading_takes_no_body():
    methods = {name: KNOWN[name][0][1] for name in GUARDED}

    assert {name for name, method in methods.items() if method != "get"} == set(TAKING_A_BODY)

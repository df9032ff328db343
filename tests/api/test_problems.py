"""One shape for every error, whoever raises it, and nothing of the host's changed by it."""

from __future__ import annotations

import socket

import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from django.http.request import UnreadablePostError
from rest_framework.authentication import BasicAuthentication
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import AllowAny, BasePermission
from rest_framework.settings import api_settings
from rest_framework.test import APIClient
from rest_framework.throttling import ScopedRateThrottle

from convsessions.api import endpoint, problems
from convsessions.exceptions import Conflict

from .conftest import code_of, message

pytestmark = pytest.mark.django_db(transaction=True)


def test_401_comes_with_a_challenge(session, monkeypatch):
    monkeypatch.setattr(endpoint.Endpoint, "authentication_classes", [BasicAuthentication])
    client = APIClient()

    anonymous = client.get("/api/sessions/")
    wrong = client.get("/api/sessions/", headers={"Authorization": "Basic eDp5"})

    assert code_of(anonymous) == (401, "not_authenticated")
    assert code_of(wrong) == (401, "authentication_failed")
    assert anonymous["WWW-Authenticate"] == 'Basic realm="api"'


def test_403_where_the_hosts_authentication_has_no_challenge(db):
    assert code_of(APIClient().get("/api/sessions/")) == (403, "not_authenticated")


def test_403_when_a_session_cookie_comes_without_its_csrf_token(owner, session):
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(owner.user)

    assert client.get(f"/api/sessions/{session.pk}/").status_code == 200
    assert code_of(client.post(f"/api/sessions/{session.pk}/pop/")) == (403, "permission_denied")


@pytest.mark.parametrize("text", ["1", "x" * 300, "%00", "0" * 32, "{00000000-0000-0000-0000-000000000000}", "é"])
@pytest.mark.parametrize("kind", ["session", "write"])
def test_404_for_what_is_no_id(owner, kind, text):
    assert code_of(owner.get(f"/api/{kind}s/{text}/")) == (404, f"{kind}_not_found")


def test_405_names_the_methods_that_there_are(owner, session):
    response = owner.get(f"/api/sessions/{session.pk}/pop/")

    assert code_of(response) == (405, "method_not_allowed")
    assert response["Allow"] == "POST, OPTIONS"


def test_406_for_a_client_that_wants_no_json(owner):
    assert code_of(owner.get("/api/sessions/", headers={"Accept": "text/html"})) == (406, "not_acceptable")


def test_404_for_a_format_that_there_is_not(owner):
    assert code_of(owner.get("/api/sessions/", {"format": "xml"})) == (404, "not_found")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"]
)
def test_415_for_anything_but_json(owner, session, content_type):
    response = owner.generic("POST", f"/api/sessions/{session.pk}/items/", b"items=1", content_type)

    assert code_of(response) == (415, "unsupported_media_type")


def test_429_from_the_hosts_throttle_with_our_scope(owner, session, monkeypatch):
    monkeypatch.setitem(api_settings.DEFAULT_THROTTLE_RATES, endpoint.WRITES_SCOPE, "1/hour")
    monkeypatch.setattr(endpoint.Endpoint, "throttle_classes", [ScopedRateThrottle])

    responses = [owner.post(f"/api/sessions/{session.pk}/items/", {"items": []}, format="json") for _ in range(2)]

    assert responses[0].status_code == 201
    assert code_of(responses[1]) == (429, "throttled")
    assert 3500 < int(responses[1]["Retry-After"]) <= 3600
    assert owner.get("/api/sessions/").status_code == 200


def test_a_host_that_throttles_by_scope_need_not_know_ours(owner, session, monkeypatch):
    monkeypatch.setattr(endpoint.Endpoint, "throttle_classes", [ScopedRateThrottle])

    assert owner.post(f"/api/sessions/{session.pk}/pop/").status_code == 202


READS = {
    "500": ({"kind": "error_before", "status": 500}, 502, "upstream_failed", None),
    "not JSON": ({"kind": "html_before"}, 502, "upstream_failed", None),
    "dropped": ({"kind": "lost_before"}, 502, "upstream_failed", None),
    "our key is bad": ({"kind": "bad_key"}, 502, "upstream_failed", None),
    "gone": ({"kind": "error_before", "status": 404}, 502, "conversation_missing", None),
    "rate limited": ({"kind": "rate_limited", "retry_after": "2.5"}, 503, "upstream_unavailable", "3"),
    "overloaded": ({"kind": "error_before", "status": 503}, 503, "upstream_unavailable", "1"),
    "too slow": ({"kind": "hang_before", "seconds": 2.0}, 504, "upstream_timeout", None),
}


@pytest.mark.parametrize("name", READS)
def test_a_failed_read_of_the_remote_is_a_gateway_error(owner, saved, sandbox, name):
    fault, status, code, retry_after = READS[name]
    sandbox.fault(operation="list_items", times=None, **fault)

    responses = [owner.get(f"/api/sessions/{saved.pk}/items/"), owner.post(f"/api/sessions/{saved.pk}/verify/")]

    assert [code_of(response) for response in responses] == [(status, code)] * 2
    assert responses[0].get("Retry-After") == retry_after


def test_an_api_that_cannot_be_reached_is_a_gateway_error(owner, saved, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        response = owner.get(f"/api/sessions/{saved.pk}/items/")

    assert code_of(response) == (502, "upstream_failed")


class Demanding(BasePermission):
    def has_permission(self, request, view):
        raise ValidationError({"tenant": ["unknown"]})


def test_the_permission_classes_of_the_setting_decide(owner, quick):
    quick["PERMISSION_CLASSES"] = [f"{__name__}.Demanding"]

    response = owner.get("/api/sessions/")

    assert code_of(response) == (422, "invalid")
    assert response.json()["errors"] == [{"field": "tenant", "code": "invalid", "detail": "unknown"}]


class NotThisOne(AllowAny):
    def has_object_permission(self, request, view, obj):
        return False


def test_the_permission_classes_see_each_session(owner, session, quick):
    quick["PERMISSION_CLASSES"] = [f"{__name__}.NotThisOne"]

    assert code_of(owner.get(f"/api/sessions/{session.pk}/")) == (403, "permission_denied")
    assert owner.get("/api/sessions/").status_code == 200


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (PermissionDenied("row 17"), 403, "permission_denied"),
        (Http404("row 17"), 404, "not_found"),
        (RequestDataTooBig("row 17"), 413, "body_too_large"),
        (UnreadablePostError("row 17"), 400, "body_unreadable"),
        (Conflict("of a kind that is new"), 409, "conflict"),
    ],
)
def test_exceptions_of_django_have_the_shape_too_and_keep_their_texts(error, status, code):
    body = problems.handle(error, {}).data

    assert (body["status"], body["code"]) == (status, code)
    assert "row 17" not in body["detail"]


def test_the_hosts_exception_handler_is_not_touched():
    assert api_settings.EXCEPTION_HANDLER is not problems.handle


def test_a_bug_is_left_to_the_host(owner, monkeypatch):
    monkeypatch.setattr(endpoint.rows, "sessions", lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        owner.get("/api/sessions/")


def test_a_length_that_is_no_number_is_no_body(owner, session):
    path = f"/api/sessions/{session.pk}/items/"
    response = owner.post(path, {"items": [message()]}, format="json", CONTENT_LENGTH="x")

    assert code_of(response) == (422, "missing")

"""The OpenAPI document: valid, complete, and what the site shows of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.test import Client
from openapi_spec_validator import validate

from convsessions.api import urls

from .documented import document, operations

ROOT = Path(__file__).resolve().parents[2]

OPERATION_IDS = {
    "listSessions": "GET /api/sessions/",
    "createSession": "POST /api/sessions/",
    "getSession": "GET /api/sessions/{session_id}/",
    "updateSession": "PATCH /api/sessions/{session_id}/",
    "deleteSession": "DELETE /api/sessions/{session_id}/",
    "listItems": "GET /api/sessions/{session_id}/items/",
    "appendItems": "POST /api/sessions/{session_id}/items/",
    "popItem": "POST /api/sessions/{session_id}/pop/",
    "clearSession": "POST /api/sessions/{session_id}/clear/",
    "verifySession": "POST /api/sessions/{session_id}/verify/",
    "listWrites": "GET /api/sessions/{session_id}/writes/",
    "getWrite": "GET /api/writes/{write_id}/",
    "cancelWrite": "POST /api/writes/{write_id}/cancel/",
    "reconcileWrite": "POST /api/writes/{write_id}/reconcile/",
    "inspectWrite": "GET /api/writes/{write_id}/resolve/",
    "resolveWrite": "POST /api/writes/{write_id}/resolve/",
    "getHealth": "GET /api/health/",
}


def test_the_document_is_one(tmp_path):
    call_command("spectacular", file=str(tmp_path / "schema.yml"), validate=True, fail_on_warn=True)

    validate(document())


def test_operation_ids_are_stable():
    found = {operation["operationId"]: f"{method.upper()} {path}" for (path, method), operation in operations().items()}

    assert found == OPERATION_IDS


def test_every_method_of_every_url_is_documented():
    handled = {
        ("/api/" + re.sub(r"<str:(\w+)>", r"{\1}", str(pattern.pattern)), method.lower())
        for pattern in urls.urlpatterns
        for method in pattern.callback.cls().allowed_methods
        if method not in {"OPTIONS", "HEAD"}
    }

    assert handled == set(operations())


def test_every_operation_is_described_in_full():
    for operation in operations().values():
        assert operation["summary"]
        assert operation["tags"]
        is_open = operation["operationId"] == "getHealth"
        assert operation.get("security", [{}]) == ([{}] if is_open else [{"cookieAuth": []}, {"basicAuth": []}])
        for status, answer in operation["responses"].items():
            assert status == "304" or answer["content"]
            if status[0] in "45" and not is_open:
                [(content_type, content)] = answer["content"].items()
                assert content_type == "application/problem+json"
                assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
        if not is_open:
            assert {"401", "403", "406", "429"} <= set(operation["responses"])


def test_requests_that_carry_fields_have_an_example():
    bodies = {
        operation["operationId"]: operation["requestBody"]["content"]["application/json"]
        for operation in operations().values()
        if "requestBody" in operation
    }
    taking = {name for name, body in bodies.items() if not body["schema"].get("$ref", "").endswith("Nothing")}

    with_fields = {"createSession", "updateSession", "appendItems", "clearSession", "reconcileWrite", "resolveWrite"}
    assert {name for name in taking if "examples" in bodies[name]} == with_fields


def test_the_site_serves_the_document_without_a_login(db):
    response = Client().get("/api/schema/", {"format": "json"})

    assert response.status_code == 200
    assert json.loads(response.content)["paths"].keys() == document()["paths"].keys()


def test_the_documentation_loads_nothing_from_elsewhere(db):
    page = Client().get("/api/docs/").content.decode()

    assets = re.findall(r"""(?:src|href)=["']([^"']+)["']""", page)
    assert [asset for asset in assets if not asset.startswith("/static/drf_spectacular_sidecar/")] == []
    assert len(assets) >= 3
    assert all(finders.find(asset.removeprefix("/static/")) for asset in assets)
    assert not re.search(r"https?://(?!localhost|testserver)", page)


WITHOUT = """
import sys
sys.modules["drf_spectacular"] = None
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "rest_framework", "convsessions"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:",
                           "OPTIONS": {"transaction_mode": "IMMEDIATE"}}},
    ROOT_URLCONF="convsessions.api.urls", USE_TZ=True, ALLOWED_HOSTS=["*"],
    CONVSESSIONS={"DISPATCHER": "convsessions.enqueue.dispatch_nowhere"},
)
django.setup()
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
print(Client().get("/health/").status_code, "convsessions.api.openapi" in sys.modules)
"""


def test_the_api_works_without_drf_spectacular():
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("200 False\n", "")


@pytest.mark.parametrize("status", [200, 503])
def test_health_is_documented_as_the_same_shape_well_or_not(status):
    content = operations()["/api/health/", "get"]["responses"][str(status)]["content"]["application/json"]

    assert content["schema"] == {"$ref": "#/components/schemas/Health"}

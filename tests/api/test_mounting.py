"""Inside a host site: any prefix, any namespace, any number of times, ATOMIC_REQUESTS."""

from __future__ import annotations

import pytest
from django.db import connection
from django.urls import include, path, reverse

from convsessions import operations
from convsessions.api import urls

from .conftest import message, texts

pytestmark = pytest.mark.django_db(transaction=True)

urlpatterns = [
    path("one/", include("convsessions.api.urls")),
    path("two/", include("convsessions.api.urls", namespace="second")),
    path("v2/", include(([path("conv/", include("convsessions.api.urls"))], "outer"))),
    path("tenants/<slug:tenant>/", include("convsessions.api.urls", namespace="tenant"), {"plan": "free"}),
]
PREFIXES = ["one", "two", "v2/conv", "tenants/acme", "tenants/other"]


@pytest.mark.urls(__name__)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_links_stay_within_the_inclusion_they_came_by(owner, prefix):
    created = owner.post(f"/{prefix}/sessions/")
    written = owner.post(f"{created['Location']}items/", {"items": [message()]}, format="json")

    assert created["Location"].startswith(f"http://testserver/{prefix}/sessions/")
    assert written["Location"].startswith(f"http://testserver/{prefix}/writes/")
    assert owner.get(written["Location"]).json() == written.json()


def test_the_namespace_can_be_reversed_by_the_host(session):
    assert reverse("convsessions_api:session", kwargs={"session_id": session.pk}) == f"/api/sessions/{session.pk}/"


@pytest.fixture
def atomic_requests(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)


@pytest.mark.parametrize("pattern", urls.urlpatterns, ids=lambda pattern: pattern.name)
def test_no_view_runs_in_a_transaction_of_its_own(pattern):
    assert set(pattern.callback._non_atomic_requests) == {"default"}


@pytest.mark.usefixtures("atomic_requests")
def test_the_remote_can_be_read_under_atomic_requests(owner, saved, operator, ambiguous):
    assert texts(owner.get(f"/api/sessions/{saved.pk}/items/").json()["data"])[:3] == ["1", "2", "3"]
    assert owner.post(f"/api/sessions/{saved.pk}/verify/").status_code == 200
    assert operator.get(f"/api/writes/{ambiguous.pk}/resolve/").status_code == 200


@pytest.mark.usefixtures("atomic_requests")
def test_a_write_is_committed_when_it_is_answered_under_atomic_requests(owner, session, quick, monkeypatch):
    rung = []
    monkeypatch.setattr("convsessions.enqueue._dispatch", lambda session_id: rung.append(connection.in_atomic_block))

    response = owner.post(
        f"/api/sessions/{session.pk}/items/", {"items": [message()]}, format="json", headers={"Prefer": "wait=0"}
    )

    assert (response.status_code, response["Preference-Applied"], rung) == (202, "wait=0", [False])
    assert operations.get_write(response.json()["id"]).state == "pending"

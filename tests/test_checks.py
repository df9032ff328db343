"""Every system check fires for what it is there for, by its id, and is silent otherwise."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.db import connections
from django_q.conf import Conf


def ids(**kwargs) -> list[str]:
    return [message.id for message in run_checks(**kwargs) if message.id.startswith("convsessions.")]


@pytest.fixture
def defaults(settings):
    settings.CONVSESSIONS = {}
    return settings


def test_the_site_of_this_repository_has_nothing_to_complain_about(defaults):
    assert ids(databases=["default"]) == []


@pytest.mark.parametrize(
    "values",
    [
        {"CHUNK_ITEMS": 21},
        {"CHUNK_ITEMS": True},
        {"REQUEST_TIMEOUT": float("nan")},
        {"REQUEST_TIMEOUT": "30"},
        {"RETRY_BACKOFF": (2, 1)},
        {"VERIFY_WRITES": 1},
        {"UNKNOWN_ITEM_TYPES": "ignore"},
        {"READ_INCLUDE": ["no.such.content"]},
        {"READ_TIMEOUT": 0},
        {"UNKNOWN_ITEM_TYPES": ["warn"]},
        {"CLIENT_FACTORY": None},
        {"NO_SUCH_SETTING": 1},
        "not a dict",
    ],
    ids=str,
)
def test_a_value_that_cannot_be_used(defaults, values):
    defaults.CONVSESSIONS = values
    assert ids()[0] == "convsessions.E001"


@pytest.mark.parametrize("name", ["CLIENT_FACTORY", "ASYNC_CLIENT_FACTORY", "DISPATCHER"])
def test_a_dotted_path_that_leads_nowhere(defaults, name):
    defaults.CONVSESSIONS = {name: "convsessions.no_such_thing"}
    assert ids() == ["convsessions.E002"]


def test_sqlite_without_immediate_transactions(defaults, monkeypatch):
    connection = connections["default"]
    monkeypatch.setattr(connection, "vendor", "sqlite")
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {})
    assert ids(databases=["default"]) == ["convsessions.W001"]


@pytest.mark.parametrize("timeout", [None, 65], ids=["none", "too short"])
def test_a_queue_timeout_that_can_hit_a_delivery(defaults, monkeypatch, timeout):
    monkeypatch.setattr(Conf, "TIMEOUT", timeout)
    assert ids() == ["convsessions.W002"]


def test_a_queue_that_repeats_running_tasks(defaults, monkeypatch):
    monkeypatch.setattr(Conf, "RETRY", 2 * Conf.TIMEOUT)
    assert ids() == ["convsessions.W003"]


def test_a_lease_that_ends_before_a_late_request_can_no_longer_land(defaults):
    defaults.CONVSESSIONS = {"LEASE_GRACE": 1.0, "SETTLE_SECONDS": 2.0}
    assert ids() == ["convsessions.W004"]


def test_a_dispatcher_that_would_pass_over_the_clients_of_the_host(defaults):
    ready = {"DISPATCHER": "convsessions.enqueue.dispatch_ready_with_django_q"}
    own = {"CLIENT_FACTORY": "project.clients.sandbox_client"}
    defaults.CONVSESSIONS = ready | own
    assert ids() == ["convsessions.W005"]
    for sound in (ready, own, ready | own | {"ASYNC_CLIENT_FACTORY": "project.clients.async_sandbox_client"}):
        defaults.CONVSESSIONS = sound
        assert ids() == []

"""Every system check fires for what it is there for, by its id, and is silent otherwise."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.db import connections
from django_q.conf import Conf
from django_q.models import Schedule

import convsessions.checks
from convsessions import enqueue


def ids(**kwargs) -> list[str]:
    return [message.id for message in run_checks(**kwargs) if message.id.startswith("convsessions.")]


@pytest.fixture
def defaults(settings, monkeypatch):
    settings.CONVSESSIONS = {}
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return settings


@pytest.mark.django_db
def test_the_site_of_this_repository_has_nothing_to_complain_about(defaults):
    assert ids(databases=["default"]) == []


def test_every_id_is_in_the_readme_and_in_a_test():
    in_code = {
        found
        for module in Path(convsessions.checks.__file__).parent.glob("*.py")
        for found in re.findall(r'id="convsessions\.([EWI]\d+)"', module.read_text())
    }
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    in_readme = re.findall(r"^\| `([EWI]\d+)` \|", readme, re.MULTILINE)
    in_tests = set(re.findall(r'"convsessions\.([EWI]\d+)"', Path(__file__).read_text()))

    assert in_readme == sorted(in_code)
    assert in_tests == in_code


def test_a_check_can_be_silenced(defaults, monkeypatch):
    monkeypatch.setattr(Conf, "SYNC", True)
    (message,) = [found for found in run_checks() if found.id == "convsessions.W015"]
    assert (message.is_silenced(), bool(message.hint)) == (False, True)
    defaults.SILENCED_SYSTEM_CHECKS = ["convsessions.W015"]
    assert message.is_silenced()


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
    assert ids(tags=["database"], databases=[]) == ["convsessions.W001"]


@pytest.mark.skipif(connections["default"].vendor != "sqlite", reason="about SQLite")
@pytest.mark.django_db
def test_sqlite_without_wal(defaults, monkeypatch, tmp_path):
    assert ids(databases=["default"]) == []
    with sqlite3.connect(tmp_path / "plain.sqlite3") as plain:
        monkeypatch.setattr(connections["default"], "connection", plain)
        assert "convsessions.W008" in ids(databases=["default"])
    plain.close()


def test_a_pool_of_connections_beside_a_cluster(defaults, monkeypatch):
    monkeypatch.setitem(connections["default"].settings_dict["OPTIONS"], "pool", True)
    assert ids() == ["convsessions.W007"]


@pytest.mark.parametrize("age", [None, 60])
def test_persistent_connections_without_health_checks(defaults, monkeypatch, age):
    connection = connections["default"]
    monkeypatch.setattr(connection, "vendor", "postgresql")
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", age)
    monkeypatch.setitem(connection.settings_dict, "CONN_HEALTH_CHECKS", False)
    assert ids() == ["convsessions.W009"]
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
    assert ids() == []


@pytest.mark.parametrize(("level", "found"), [(None, 1), ("repeatable read", 1), ("READ COMMITTED", 0)])
def test_an_isolation_level_that_locks_gaps(defaults, monkeypatch, level, found):
    connection = connections["default"]
    monkeypatch.setattr(connection, "vendor", "mysql")
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "isolation_level", level)
    assert ids() == ["convsessions.W017"] * found


@pytest.mark.django_db
def test_a_sweep_that_nobody_scheduled(defaults):
    Schedule.objects.filter(func=enqueue.SWEEP_TASK).delete()
    assert ids(databases=["default"]) == ["convsessions.W010"]
    enqueue.ensure_sweep_schedule("default")
    assert ids(databases=["default"]) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("TIMEOUT", None), ("TIMEOUT", 90.5), ("TIMEOUT", "90"), ("RETRY", None), ("RETRY", 300.5)],
    ids=str,
)
def test_a_queue_timeout_that_is_missing_or_no_whole_number(defaults, monkeypatch, name, value):
    monkeypatch.setattr(Conf, name, value)
    assert ids() == ["convsessions.W006"]


def test_a_queue_timeout_that_can_hit_a_delivery(defaults, monkeypatch):
    monkeypatch.setattr(Conf, "TIMEOUT", 65)
    assert ids() == ["convsessions.W002"]


def test_no_key(defaults, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ids() == ["convsessions.W011"]
    defaults.CONVSESSIONS = {"CLIENT_FACTORY": "project.clients.sandbox_client"}
    assert ids() == []


def test_local_time_in_a_zone_with_summer_time(defaults):
    defaults.USE_TZ = False
    defaults.TIME_ZONE = "Europe/Berlin"
    assert ids() == ["convsessions.W012"]
    defaults.TIME_ZONE = "Asia/Kolkata"
    assert ids() == []


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("http://gateway.example/v1", ["convsessions.W013"]),
        ("http://10.0.0.7/v1", ["convsessions.W013"]),
        ("http://127.0.0.1.example/v1", ["convsessions.W013"]),
        ("gateway.example/v1", ["convsessions.W013"]),
        ("https://gateway.example/v1", []),
        ("http://127.0.0.1:8000/v1", []),
        ("http://[::1]:8000/v1", []),
        ("http://localhost:8000/v1", []),
    ],
)
def test_an_address_to_which_the_key_goes_in_plain_text(defaults, monkeypatch, address, found):
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    assert ids() == found


class QueueElsewhere:
    def allow_migrate(self, db, app_label, **hints):
        return (db == "queue") == (app_label == "django_q")


def test_a_queue_in_a_database_that_does_not_have_it(defaults, monkeypatch):
    defaults.DATABASE_ROUTERS = [f"{__name__}.QueueElsewhere"]
    assert ids() == ["convsessions.W016"]
    monkeypatch.setattr(Conf, "ORM", "queue")
    assert ids() == ["convsessions.W016"]
    monkeypatch.setitem(connections.settings, "queue", connections["default"].settings_dict)
    assert ids() == []
    monkeypatch.setattr(Conf, "ORM", None)
    assert ids() == []


@pytest.mark.parametrize(("seconds", "found"), [(0.3, ["convsessions.W014"]), (0.25, []), (0.5, []), (1, [])])
def test_a_guard_that_never_ends_hung_workers(defaults, monkeypatch, seconds, found):
    monkeypatch.setattr(Conf, "GUARD_CYCLE", seconds)
    assert ids() == found


def test_a_queue_that_runs_tasks_in_the_request(defaults, monkeypatch):
    monkeypatch.setattr(Conf, "SYNC", True)
    assert ids() == ["convsessions.W015"]


def test_templates_that_are_not_found(defaults):
    defaults.TEMPLATES = [{**defaults.TEMPLATES[0], "APP_DIRS": False}]
    assert ids() == ["convsessions.E004"]


def test_a_cipher_that_cannot_be_used(defaults):
    defaults.CONVSESSIONS = {"CIPHER": "convsessions.ciphers.fernet"}
    assert ids() == ["convsessions.E003"]


def test_a_cache_that_no_other_process_sees(defaults):
    assert ids(include_deployment_checks=True) == ["convsessions.I001"]
    defaults.CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"}}
    assert ids(include_deployment_checks=True) == []


def test_a_queue_in_redis(defaults, monkeypatch):
    defaults.CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"}}
    monkeypatch.setattr(Conf, "ORM", None)
    assert ids(include_deployment_checks=True) == ["convsessions.I002"]


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

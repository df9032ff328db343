"""Fixtures shared by all tests: a real sandbox process, the environment that points at it, and quick timings.

Delivery is only ever started by a test itself (`operations.deliver`, or a real worker process): DISPATCHER is
`dispatch_nowhere` here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from convsessions import operations
from convsessions.sandbox.testing import SandboxProcess

from .agentic import agentic_api
from .keys import Keys

ROOT = Path(__file__).resolve().parent.parent

QUICK = {
    "REQUEST_TIMEOUT": 1.0,
    "LEASE_GRACE": 1.0,
    "SETTLE_SECONDS": 0.2,
    "DELIVERY_BUDGET": 30.0,
    "RETRY_BACKOFF": (0.05, 0.4),
    "DISPATCHER": "convsessions.enqueue.dispatch_nowhere",
}


@pytest.fixture(autouse=True)
def quick(settings):
    """Timings that let a test see a deadline, a lease and a settle delay pass."""
    settings.CONVSESSIONS = dict(QUICK)
    return settings.CONVSESSIONS


@pytest.fixture
def keys(quick) -> Keys:
    """What the site's content is encrypted with."""
    return Keys(quick)


@pytest.fixture(autouse=True)
def one_loop():
    """What `deliver_ready` keeps for its next call, with its connections, is no other test's."""
    yield
    operations.close_loop()


@pytest.fixture(scope="session")
def sandbox_process(tmp_path_factory) -> Iterator[SandboxProcess]:
    folder = tmp_path_factory.mktemp("sandbox")
    with SandboxProcess(folder, python=sys.executable, manage=ROOT / "manage.py") as process:
        yield process


@pytest.fixture
def sandbox(sandbox_process, monkeypatch) -> Iterator[SandboxProcess]:
    """The Conversations API, empty and without faults, and the environment that the default client reads."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", sandbox_process.base_url)
    sandbox_process.reset()
    return sandbox_process


@pytest.fixture(scope="session")
def agentic_url(tmp_path_factory) -> Iterator[str]:
    """A Conversations API by others. A laptop may lack it; CI may not."""
    try:
        with agentic_api(tmp_path_factory.mktemp("agentic")) as url:
            yield url
    except FileNotFoundError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix, tmp_path_factory) -> None:
    """On SQLite, a file: other connections, threads and processes must see the same database."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")


@pytest.fixture
def session(transactional_db):
    return operations.create_session()

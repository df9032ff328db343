"""A client for each session: two tenants with a key and an address of their own, by the README's example."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model

from convsessions import operations
from convsessions.sandbox.testing import SandboxProcess
from convsessions.states import HoldCode, WriteState
from tests.histories import append, remote_texts

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.search(r"<!-- test: tenants -->\n```python\n(.*?)```", TEXT, re.DOTALL)[1]


@pytest.fixture
def other_sandbox(tmp_path):
    with SandboxProcess(tmp_path, python=sys.executable, manage=ROOT / "manage.py") as process:
        yield process


@pytest.fixture
def tenants(sandbox, other_sandbox, quick, monkeypatch):
    """The module of the example, in a host whose users have a key and an address each."""
    kept = {"ann": ("sk-ann", sandbox.base_url), "bob": ("sk-bob", other_sandbox.base_url)}
    host = types.ModuleType("host_tenants")
    exec(compile(EXAMPLE, "README.md", "exec"), host.__dict__)
    host.credentials = lambda session: kept[session.owner.username]
    monkeypatch.setitem(sys.modules, "host_tenants", host)
    quick |= {"CLIENT_FACTORY": "host_tenants.client", "ASYNC_CLIENT_FACTORY": "host_tenants.async_client"}
    return kept


def session_of(name: str):
    return operations.create_session(owner=get_user_model().objects.create_user(name), key="ticket")


@pytest.mark.parametrize("deliver", ["deliver", "adeliver"])
def test_each_session_has_the_key_and_the_address_of_its_tenant(tenants, sandbox, other_sandbox, deliver):
    run = operations.deliver if deliver == "deliver" else async_to_sync(operations.adeliver)
    sessions = {name: session_of(name) for name in tenants}
    for name, session in sessions.items():
        append(session, 3, prefix=name)
        run(session.pk)

    assert remote_texts(sandbox, sessions["ann"]) == ["ann0", "ann1", "ann2"]
    assert remote_texts(other_sandbox, sessions["bob"]) == ["bob0", "bob1", "bob2"]
    assert len(sandbox.requests()) == len(other_sandbox.requests()) == 2


def test_a_conversation_that_the_present_key_does_not_find_is_held_and_never_replaced(
    tenants, sandbox, other_sandbox, quick
):
    quick["RETRY_BACKOFF"] = (600.0, 600.0)
    session = session_of("ann")
    append(session, 1)
    operations.deliver(session.pk)
    session.refresh_from_db()
    conversation = session.conversation_id

    tenants["ann"] = tenants["bob"]  # a key of another project
    write = append(session, 2, start=1)
    operations.deliver(session.pk)
    write.refresh_from_db()
    session.refresh_from_db()
    assert (write.hold_code, write.needs_attention) == (HoldCode.MISSING, True)
    assert session.conversation_id == conversation
    assert [row["operation"] for row in other_sandbox.requests()] == ["append_items"]

    tenants["ann"] = ("sk-ann", sandbox.base_url)
    operations.retry_write(write.pk)
    operations.deliver(session.pk)
    assert operations.get_write(write.pk).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["m0", "m1", "m2"]

"""Marked content goes through everything that can happen to it; then it is looked for wherever it does not belong."""

from __future__ import annotations

import logging

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.test import Client
from django_q.models import OrmQ, Task

from convsessions import operations
from convsessions.exceptions import InvalidItem
from convsessions.models import ConversationSession, WriteChunk, WriteIntent
from convsessions.states import WriteState
from tests.histories import eventually
from tests.queue.cluster import Cluster, site_environment

pytestmark = pytest.mark.django_db(transaction=True)

MARK = "zebra-7731"
KEY = "sk-key-4471"
PAYLOAD_COLUMNS = {
    ("convsessions.writechunk", "payload"),
    ("convsessions.writechunk", "original"),
    ("convsessions.writeintent", "popped"),
}


def marked(name: str) -> dict:
    return {"type": "message", "role": "user", "content": f"{MARK} {name}"}


@pytest.fixture
def logged(monkeypatch):
    """Everything that any logger says at any level, tracebacks included, as text."""
    said: list[str] = []

    class Everything(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(self.format(record))

    handler = Everything()
    names = [None, *logging.root.manager.loggerDict]
    levels = {name: logging.getLogger(name).level for name in names}
    # Whatever ran before in this process, and whatever it left switched off.
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
        monkeypatch.setattr(logging.getLogger(name), "disabled", False)
    logging.getLogger().addHandler(handler)
    yield said
    logging.getLogger().removeHandler(handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def session(sandbox, transactional_db, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return operations.create_session(key="ticket")


def deliver(write: WriteIntent) -> WriteIntent:
    operations.deliver(write.session_id)
    return operations.get_write(write.pk)


def everything_happens(sandbox, session) -> None:
    """Saved, lost, rate limited, refused, held, doubled, repaired, popped, and an item that cannot be accepted."""
    assert deliver(operations.append_items(session.pk, [marked("one"), marked("two")])).state == WriteState.SAVED
    for fault in ("lost_after", "rate_limited", "html", "error_after", "bad_key", "truncated"):
        sandbox.fault(fault, operation="append_items", times=1)
        write = operations.append_items(session.pk, [marked(fault)])
        eventually(lambda write=write: operations.retry_write(write.pk) and deliver(write).settled)
    sandbox.clear_faults()
    sandbox.fault("fussy", text="not this", times=1)
    assert deliver(operations.append_items(session.pk, [marked("not this")])).state == WriteState.REFUSED
    assert deliver(operations.pop_item(session.pk)).state == WriteState.SAVED
    session.refresh_from_db()
    sandbox.append_foreign(session.conversation_id, [marked("twice")])
    sandbox.fault("lost_after", operation="append_items", times=1)
    assert deliver(operations.append_items(session.pk, [marked("twice")])).state == WriteState.AMBIGUOUS
    with pytest.raises(InvalidItem) as error:
        operations.append_items(session.pk, [{"type": "message", "role": "user", "content": {MARK: MARK}}])
    assert MARK not in str(error.value)


def repair_in_the_admin(user) -> None:
    browser = Client()
    browser.force_login(user)
    write = WriteIntent.objects.get(state=WriteState.AMBIGUOUS)
    for page in ("change/", "resolve/", "content/?chunk=0", "content/?item=0"):
        assert browser.get(f"/admin/convsessions/writeintent/{write.pk}/{page}").status_code == 200
    shown = operations.inspect_write(write.pk)
    fields = {"resolution": "remove_duplicates", "reason": "doubled", "confirmed": "on", "evidence": shown.token}
    reply = browser.post(f"/admin/convsessions/writeintent/{write.pk}/resolve/", fields)
    assert reply.status_code == 302
    assert eventually(lambda: deliver(write).settled)


def rows_with(mark: str) -> set[tuple[str, str]]:
    """(model, column) of every column of every table of this site, but the sandbox's, in which `mark` stands."""
    found = set()
    for model in apps.get_models():
        if model._meta.app_label == "convsessions_sandbox" or not model._meta.managed:
            continue
        for field in model._meta.concrete_fields:
            values = model.objects.values_list(field.attname, flat=True) if hasattr(model, "objects") else ()
            if any(mark in str(value) for value in values):
                found.add((model._meta.label_lower, field.attname))
    return found


def test_content_is_in_payload_columns_alone_and_never_in_a_log(sandbox, session, logged):
    everything_happens(sandbox, session)
    repair_in_the_admin(get_user_model().objects.create_superuser("root"))
    operations.verify_session(session.pk)

    leaks = [line[max(line.find(MARK) - 120, 0) :][:200] for line in logged if MARK in line]
    assert leaks == []
    assert not [line for line in logged if KEY in line]
    assert any("request_ended" in line for line in logged), "nothing was logged, so that nothing was tested"
    assert rows_with(MARK) <= PAYLOAD_COLUMNS
    assert ("convsessions.writechunk", "payload") in rows_with(MARK)
    assert rows_with(KEY) == set()


def test_content_is_in_no_task_of_the_queue_though_the_task_fails(sandbox, session, quick, tmp_path):
    quick["DISPATCHER"] = "convsessions.enqueue.dispatch_with_django_q"
    write = operations.append_items(session.pk, [marked("queued")])
    assert MARK not in str(list(OrmQ.objects.values()))
    assert MARK not in str([row.task for row in OrmQ.objects.all()])
    # A row that the delivery trips over.
    WriteChunk.objects.filter(write=write).update(payload=f'[{{"{MARK}": not json')
    log = tmp_path / "qcluster.log"
    with Cluster(site_environment(sandbox.base_url, quick), log):
        eventually(lambda: not OrmQ.objects.exists())

    assert MARK not in str(list(Task.objects.values()))
    assert MARK not in log.read_text()


def test_content_is_only_in_replies_to_those_who_may_see_it(sandbox, session):
    everything_happens(sandbox, session)
    users = get_user_model().objects
    root, stranger = users.create_superuser("root"), users.create_user("stranger", is_staff=True)
    ConversationSession.objects.update(owner=root)
    write = WriteIntent.objects.get(state=WriteState.AMBIGUOUS)
    pages = [
        f"/api/sessions/{session.pk}/items/",
        f"/api/writes/{write.pk}/",
        f"/api/writes/{write.pk}/resolve/",
        f"/admin/convsessions/writeintent/{write.pk}/change/",
        f"/admin/convsessions/writeintent/{write.pk}/resolve/",
        "/api/sessions/",
    ]
    for user, may_see in ((None, False), (stranger, False), (root, True)):
        browser = Client()
        if user:
            browser.force_login(user)
        seen = [MARK in browser.get(page).content.decode() for page in pages]
        assert any(seen) is may_see, (user, dict(zip(pages, seen, strict=True)))

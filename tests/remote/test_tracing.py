"""A span for each delivery, and within it for each request, with ids and codes alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid

import pytest
from asgiref.sync import async_to_sync
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from convsessions import operations, tasks
from convsessions.exceptions import SessionNotFound
from convsessions.remote import tracing
from convsessions.states import WriteState
from tests.histories import append

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def spans(monkeypatch):
    """What was exported. The provider is not the global one, which can be set once only."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter.get_finished_spans


@pytest.mark.parametrize("deliver", [operations.deliver, async_to_sync(operations.adeliver)], ids=["sync", "async"])
def test_each_request_has_a_span_with_its_outcome_and_no_content(sandbox, session, spans, deliver):
    sandbox.fault("lost_after", operation="append_items", times=1)
    append(session, 3, prefix="zebra")
    deliver(session.pk)
    session.refresh_from_db()

    *requests, whole = spans()
    create, lost, *reads = [dict(each.attributes) for each in requests]
    assert create["convsessions.operation"] == "create_conversation"
    assert (create["http.response.status_code"], create["convsessions.outcome"]) == (200, "applied")
    assert lost == {
        "convsessions.operation": "append_items",
        "convsessions.conversation": session.conversation_id,
        "convsessions.items": 3,
        "convsessions.outcome": "unknown",
        "convsessions.code": lost["convsessions.code"],
    }
    assert {read["convsessions.operation"] for read in reads} == {"list_items"}
    assert whole.attributes["convsessions.requests"] == len(requests)
    assert "zebra" not in "".join(each.to_json() for each in spans())


DRIVERS = {
    "deliver": lambda session: operations.deliver(session.pk),
    "adeliver": lambda session: async_to_sync(operations.adeliver)(session.pk),
    "deliver_ready": lambda session: operations.deliver_ready(5),
    "task": lambda session: tasks.deliver_session(str(session.pk)),
}


@pytest.mark.parametrize("deliver", DRIVERS.values(), ids=DRIVERS)
def test_the_requests_of_a_delivery_are_within_its_span(sandbox, session, spans, quick, deliver):
    quick["CHUNK_ITEMS"] = 2
    append(session, 5, prefix="zebra")
    deliver(session)

    *requests, whole = spans()
    assert whole.name == "convsessions deliver"
    assert dict(whole.attributes) == {
        "convsessions.session": str(session.pk),
        "convsessions.ending": "done",
        "convsessions.requests": 4,
        "convsessions.chunks": 3,
    }
    assert [each.name for each in requests] == ["convsessions create_conversation", *["convsessions append_items"] * 3]
    assert {each.parent.span_id for each in requests} == {whole.context.span_id}
    assert {each.context.trace_id for each in requests} == {whole.context.trace_id}
    assert whole.parent is None
    assert "zebra" not in "".join(each.to_json() for each in spans())


def test_a_write_that_its_caller_waits_for_is_within_the_span_of_the_caller(sandbox, session, spans):
    async def host():
        with trace.get_tracer("host").start_as_current_span("host"):
            return await operations.write_through(lambda: append(session, 1), patience=10.0)

    asyncio.run(host())
    create, add, whole, outer = spans()
    assert [create.parent.span_id, add.parent.span_id] == [whole.context.span_id] * 2
    assert (whole.parent.span_id, outer.name) == (outer.context.span_id, "host")
    assert whole.attributes["convsessions.session"] == str(session.pk)


def test_deliveries_at_the_same_time_have_their_own_requests(sandbox, spans):
    sandbox.settings(latency=0.05)
    sessions = [operations.create_session() for _ in range(4)]
    for session in sessions:
        append(session, 1)
    operations.deliver_ready(4)
    wholes = {each.context.span_id: each.attributes["convsessions.session"] for each in spans() if not each.parent}
    assert sorted(wholes.values()) == sorted(str(session.pk) for session in sessions)
    parents = [each.parent.span_id for each in spans() if each.parent]
    assert sorted(parents) == sorted([*wholes, *wholes])


def test_a_delivery_with_nothing_to_do_and_one_that_fails(sandbox, session, spans, quick):
    operations.deliver(session.pk)
    with pytest.raises(SessionNotFound):
        operations.deliver(uuid.UUID(int=0))
    idle, failed = [dict(each.attributes) for each in spans()]
    assert (idle["convsessions.ending"], idle["convsessions.requests"]) == ("nothing_to_do", 0)
    assert failed == {
        "convsessions.session": str(uuid.UUID(int=0)),
        "convsessions.requests": 0,
        "convsessions.chunks": 0,
        "error.type": "SessionNotFound",
    }
    assert not [event for each in spans() for event in each.events]


def test_it_is_not_imported_where_it_is_not_installed():
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import django; django.setup()\n"
        "from convsessions import operations\n"
        "from convsessions.remote import tracing\n"
        "assert tracing.trace is None\n"
        "with tracing.delivery() as told: told.ending = 'done'\n"
    )
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "project.settings"}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


def test_without_the_package_nothing_is_different(sandbox, session, monkeypatch):
    monkeypatch.setattr(tracing, "trace", None)
    write = append(session, 3)
    operations.deliver(session.pk)
    assert operations.get_write(write.pk).state == WriteState.SAVED

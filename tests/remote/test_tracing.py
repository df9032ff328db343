"""A span for each request, with ids and codes alone."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from convsessions import operations
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

    create, lost, *reads = [dict(each.attributes) for each in spans()]
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
    assert "zebra" not in "".join(each.to_json() for each in spans())


def test_without_the_package_nothing_is_different(sandbox, session, monkeypatch):
    monkeypatch.setattr(tracing, "trace", None)
    write = append(session, 3)
    operations.deliver(session.pk)
    assert operations.get_write(write.pk).state == WriteState.SAVED

"""Spans of OpenTelemetry around requests, by its API package alone: without it (extra `otel`), nothing happens.

A span says what the journal says of a request: ids, codes and counts, never content.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .calls import AppendItems, RemoteCall
from .outcomes import Outcome

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment]

TRACER = "convsessions"


@contextlib.contextmanager
def span(call: RemoteCall) -> Iterator[Callable[[Outcome], Outcome]]:
    """With a span around one request; gives what takes down its outcome, and returns it."""
    if trace is None:
        yield lambda outcome: outcome
        return
    started = trace.get_tracer(TRACER).start_as_current_span(
        f"convsessions {call.operation}",
        kind=trace.SpanKind.CLIENT,
        attributes=_attributes(call),
        # Messages of exceptions may hold anything.
        record_exception=False,
        set_status_on_exception=False,
    )
    with started as present:

        def taken_down(outcome: Outcome) -> Outcome:
            present.set_attributes(_result(outcome))
            return outcome

        yield taken_down


def _attributes(call: RemoteCall) -> dict[str, Any]:
    count = {"convsessions.items": call.count} if isinstance(call, AppendItems) else {}
    return {"convsessions.operation": str(call.operation), "convsessions.conversation": call.conversation_id, **count}


def _result(outcome: Outcome) -> dict[str, Any]:
    known = {
        "convsessions.outcome": str(outcome.kind),
        "convsessions.code": outcome.code,
        "convsessions.request_id": outcome.request_id,
        "http.response.status_code": outcome.status,
    }
    return {name: value for name, value in known.items() if value}

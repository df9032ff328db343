"""Spans of OpenTelemetry around deliveries and requests, by its API package alone: without it (extra `otel`), none.

A delivery's span is the parent of those of its requests. They say what the journal says: ids, codes and counts, never
content.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .calls import AppendItems, RemoteCall
from .outcomes import Outcome

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment]

TRACER = "convsessions"

_SILENT: dict[str, Any] = {"record_exception": False, "set_status_on_exception": False}
"""Messages of exceptions may hold anything."""


@dataclass(slots=True)
class Told:
    """What the span of a delivery says: `session`: its id, `ending`: a value of `Ending`, "" if it raised."""

    session: Any = None
    ending: str = ""
    requests: int = 0
    chunks: int = 0

    def count(self, call: RemoteCall) -> None:
        """A request is made."""
        self.requests += 1
        self.chunks += isinstance(call, AppendItems)

    def attributes(self) -> dict[str, Any]:
        known = {"convsessions.session": self.session and str(self.session), "convsessions.ending": self.ending}
        counts = {"convsessions.requests": self.requests, "convsessions.chunks": self.chunks}
        return {name: value for name, value in known.items() if value} | counts


@contextlib.contextmanager
def delivery() -> Iterator[Told]:
    """With a span around one delivery of a session; gives what takes down how it went."""
    told = Told()
    if trace is None:
        yield told
        return
    with trace.get_tracer(TRACER).start_as_current_span("convsessions deliver", **_SILENT) as present:
        try:
            yield told
        except BaseException as error:
            present.set_attribute("error.type", type(error).__name__)
            raise
        finally:
            present.set_attributes(told.attributes())


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
        **_SILENT,
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

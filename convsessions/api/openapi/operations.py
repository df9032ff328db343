"""What each method of each URL takes and answers: one row each, by the name of the URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import parameters as p
from . import shapes

ALWAYS = (401, 403, 406, 429)
BODY = (400, 413, 415, 422)
UPSTREAM = (502, 503, 504)

MESSAGES = {
    "items": [
        {"role": "user", "content": "Where is my order?"},
        {"role": "assistant", "content": "On its way: it arrives on Friday."},
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`answers`: the shape (None: no body) by status; `problems`: statuses in the one shape of errors."""

    id: str
    summary: str
    tag: str
    answers: dict[int, Any]
    problems: tuple[int, ...] = ()
    parameters: p.Parameters = ()
    body: Any = None
    example: dict[str, Any] | None = field(default=None)


def _write(operation_id: str, summary: str, *, tag: str = "items", **rest: Any) -> Operation:
    """A request that records a write of a session."""
    rest.setdefault("body", shapes.Nothing)
    rest.setdefault("answers", {200: shapes.Write, 202: shapes.Write})
    problems = (*BODY, 404, 412, 503, *rest.pop("problems", (409,)))
    parameters = (p.SESSION_ID, *rest.pop("parameters", ()), *p.WRITING, *p.WRITE_HEADERS)
    return Operation(id=operation_id, summary=summary, tag=tag, problems=problems, parameters=parameters, **rest)


def _verb(operation_id: str, summary: str, *, problems: tuple[int, ...] = (), **rest: Any) -> Operation:
    """A request that does something to a write."""
    return Operation(
        id=operation_id, summary=summary, tag="writes",
        answers={200: shapes.Write, 201: shapes.Write, 202: shapes.Write}, problems=(*BODY, 404, 409, 503, *problems),
        parameters=(p.WRITE_ID, p.PREFER, *p.WRITE_HEADERS), **rest,
    )  # fmt: skip


OPERATIONS: dict[tuple[str, str], Operation] = {
    ("sessions", "GET"): Operation(
        id="listSessions", summary="List sessions", tag="sessions", answers={200: shapes.SessionPage}, problems=(422,),
        parameters=(*p.PAGE, *p.SESSION_FILTERS),
    ),
    ("sessions", "POST"): Operation(
        id="createSession", summary="Create a session", tag="sessions", answers={201: shapes.SessionAndWrite},
        problems=(*BODY, 409, *UPSTREAM), body=shapes.NewSession, example={"key": "ticket-4711", **MESSAGES},
        parameters=(
            p.PREFER, p.REPEATABLE, p.ETAG, p.WAITED, p.REPLAYED,
            p.told("Location", "the session", 201, required=True), p.told("Retry-After", p.LATER, 201),
        ),
    ),
    ("session", "GET"): Operation(
        id="getSession", summary="Read a session", tag="sessions", answers={200: shapes.Session, 304: None},
        problems=(404,), parameters=(p.SESSION_ID, p.IF_NONE_MATCH, p.ETAG),
    ),
    ("session", "PATCH"): Operation(
        id="updateSession", summary="Change the key or the metadata", tag="sessions",
        answers={200: shapes.SessionAndWrite, 202: shapes.SessionAndWrite}, problems=(*BODY, 404, 409, 412, 503),
        body=shapes.SessionChange, example={"metadata": {"topic": "orders"}},
        parameters=(
            p.SESSION_ID, *p.WRITING, p.ETAG, p.WAITED, p.REPLAYED,
            p.told("Location", "the write, if the metadata changes", 200, 202),
            p.told("Retry-After", p.LATER, 202, required=True),
        ),
    ),
    ("session", "DELETE"): _write(
        "deleteSession", "Delete a session and its conversation", tag="sessions", body=None, problems=(),
        parameters=(p.ERASE,),
    ),
    ("items", "GET"): Operation(
        id="listItems", summary="Read the history", tag="items", answers={200: shapes.ItemList},
        problems=(404, 422, *UPSTREAM), parameters=(p.SESSION_ID, *p.HISTORY, *p.BEHIND),
    ),
    ("items", "POST"): _write(
        "appendItems", "Append items", body=shapes.NewItems, example=MESSAGES,
        answers={200: shapes.Write, 201: shapes.Write, 202: shapes.Write},
    ),
    ("pop", "POST"): _write("popItem", "Remove the newest item"),
    ("clear", "POST"): _write(
        "clearSession", "Delete the conversation and start anew", body=shapes.Clearing, example={"erase": True},
    ),
    ("verify", "POST"): Operation(
        id="verifySession", summary="Compare the journal with the history", tag="sessions", answers={200: shapes.Drift},
        problems=(*BODY, 404, *UPSTREAM), body=shapes.Nothing, parameters=(p.SESSION_ID,),
    ),
    ("session-writes", "GET"): Operation(
        id="listWrites", summary="List the writes of a session", tag="writes", answers={200: shapes.WritePage},
        problems=(404, 422), parameters=(p.SESSION_ID, *p.PAGE, *p.WRITE_FILTERS),
    ),
    ("write", "GET"): Operation(
        id="getWrite", summary="Read how far a write is", tag="writes", answers={200: shapes.Write},
        problems=(404, 503), parameters=(p.WRITE_ID, p.PREFER, p.told("Retry-After", p.LATER, 200), p.WAITED),
    ),
    ("cancel", "POST"): _verb("cancelWrite", "Drop what of a write was not sent", body=shapes.Nothing),
    ("reconcile", "POST"): _verb(
        "reconcileWrite", "Have an ambiguous write looked at again", body=shapes.Reason,
        example={"reason": "the outage is over"},
    ),
    ("resolve", "GET"): Operation(
        id="inspectWrite", summary="Read the evidence on an ambiguous write", tag="writes",
        answers={200: shapes.Evidence}, problems=(404, 409, *UPSTREAM), parameters=(p.WRITE_ID,),
    ),
    ("resolve", "POST"): _verb(
        "resolveWrite", "Decide on an ambiguous write", problems=UPSTREAM, body=shapes.Decision,
        example={"resolution": "accept", "reason": "the author saw it", "evidence": "5f0c…"},
    ),
    ("health", "GET"): Operation(
        id="getHealth", summary="Whether writes get done", tag="health",
        answers={200: shapes.Health, 503: shapes.Health},
    ),
}  # fmt: skip
"""The rows; every one but `health` also answers with the problems of `ALWAYS`."""

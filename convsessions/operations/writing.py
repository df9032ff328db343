"""Recording what is to be done to a conversation: append, pop, and the cancellation of a write."""

from __future__ import annotations

import uuid
from typing import Any

from convsessions.conf import API_ITEMS_PER_REQUEST, conf
from convsessions.delivery.threads import asynchronous
from convsessions.exceptions import InvalidInput
from convsessions.items.chunking import chunks, cut_evenly
from convsessions.journal import recording
from convsessions.journal.taking_over import Place, record_take_over
from convsessions.models import WriteIntent
from convsessions.states import RefusalPolicy
from convsessions.values import MAX_KEY, check_text

from .intake import take_in


def append_items(
    session_id: uuid.UUID,
    items: object,
    *,
    on_refusal: str = RefusalPolicy.STOP,
    author: Any = None,
    idempotency_key: str | None = None,
) -> WriteIntent:
    """Record that `items` are to be appended, in this order, and return the write.

    `items`: list of item objects as the Responses API defines them, mappings or pydantic models. `on_refusal`: what
    becomes of them when the API refuses one: ``stop`` sends nothing after it, and the write is refused; ``skip`` goes
    on without it, and `write.skipped` says which. `idempotency_key`: a second call with the same key, items and policy
    returns the first call's write; with others it raises IdempotencyConflict. Raises SessionNotFound, and InvalidItem
    with the path of the field; then nothing is recorded. Joins the caller's transaction.
    """
    return record_append(session_id, items, on_refusal=on_refusal, author=author, idempotency_key=idempotency_key)[0]


def record_append(
    session_id: uuid.UUID,
    items: object,
    *,
    on_refusal: str = RefusalPolicy.STOP,
    author: Any = None,
    idempotency_key: str | None = None,
    if_version: int | None = None,
) -> tuple[WriteIntent, bool]:
    """As `append_items`; returns the write and whether it is new, or was recorded earlier with the same key.

    `if_version`: the `version` of the session that the caller has seen. Raises SessionChanged if it is another now,
    and nothing is recorded; a repetition with the same key is told from that.
    """
    check_text("idempotency_key", idempotency_key, MAX_KEY)
    if on_refusal not in RefusalPolicy.values:
        raise InvalidInput("on_refusal", f"choose {' or '.join(RefusalPolicy.values)}", code="invalid_choice")
    intake = take_in(items)
    return recording.record_append(
        session_id,
        intake,
        chunks(intake.items, max_items=conf.CHUNK_ITEMS, max_bytes=conf.CHUNK_BYTES),
        on_refusal=RefusalPolicy(on_refusal),
        author=author,
        idempotency_key=idempotency_key,
        if_version=if_version,
    )


def take_over_append(
    session_id: uuid.UUID, items: object, place: Place, *, author: Any = None, idempotency_key: str
) -> WriteIntent:
    """Record an append of which somebody else sent some requests, of 20 items each; delivery finds out which.

    Raises InvalidItem, SessionNotFound, SessionDeleted, IdempotencyConflict, and Conflict while a write of the session
    is open. Joins the caller's transaction.
    """
    intake = take_in(items)
    return record_take_over(
        session_id,
        intake,
        cut_evenly(intake.items, API_ITEMS_PER_REQUEST),
        place=place,
        author=author,
        idempotency_key=idempotency_key,
    )


def digest_of_items(items: object) -> str:
    """The `body_digest` of an append of `items`. Raises InvalidItem."""
    return take_in(items).digest


def pop_item(session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None) -> WriteIntent:
    """Record that the newest item is to be removed; the settled write has it in `popped` (None: there was none).

    Raises SessionNotFound, IdempotencyConflict, InvalidInput. Joins the caller's transaction.
    """
    return record_pop(session_id, author=author, idempotency_key=idempotency_key)[0]


def record_pop(
    session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None, if_version: int | None = None
) -> tuple[WriteIntent, bool]:
    """As `pop_item`; takes and returns what `record_append` does."""
    check_text("idempotency_key", idempotency_key, MAX_KEY)
    return recording.record_pop(session_id, author=author, idempotency_key=idempotency_key, if_version=if_version)


def cancel_write(write_id: uuid.UUID, *, actor: Any = None, reason: str = "") -> WriteIntent:
    """Drop what of a write was not sent; what is in flight is settled first, and `items_saved` says what was saved.

    `actor`: who asks for it; somebody who neither wrote it nor owns the session is recorded as an operator. `reason`:
    with one, who asked and why is kept as a `Reconciliation`. Raises WriteNotFound; IllegalMove for a settled or an
    ambiguous write; SessionDeleted when the author wants to keep the conversation of a deleted session. Joins the
    caller's transaction.
    """
    return recording.request_cancel(write_id, actor=actor, reason=reason)


aappend_items = asynchronous(append_items)


apop_item = asynchronous(pop_item)


acancel_write = asynchronous(cancel_write)

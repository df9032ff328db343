"""Taking over a write that the Agents SDK is stuck with."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass
from typing import Any

from convsessions import operations
from convsessions.conf import API_ITEMS_PER_REQUEST, conf
from convsessions.delivery.drivers import async_client_of
from convsessions.delivery.evidence import bound_ids
from convsessions.delivery.pages import read_failed
from convsessions.delivery.threads import in_thread
from convsessions.exceptions import WriteNotSettled
from convsessions.items import codec
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, WriteIntent
from convsessions.reconcile.matching import match
from convsessions.states import Verdict, WriteKind, WriteState

from .opening import Name
from .pending import State, is_undecided, pending_write, positions, without_pending_write
from .reading import read_plainly


@dataclass(frozen=True, slots=True)
class HandOver:
    """`may_resume`: whether the run may be resumed now, with `state`. `write`: what it waits for else, if anything."""

    state: State
    may_resume: bool
    write: WriteIntent | None = None


async def hand_over(
    state: State, *, owner: Any = None, openai_client: Any = None, patience: float | None = None
) -> HandOver:
    """Take over the append that `state` holds, after "Cannot reconcile the pending Session write".

    `state`: a `RunState`, or what its `to_json` or `to_string` gave. The append is found in the journal, where it came
    from a `DjangoConversationsSession`; else it is recorded there, for the session that stands for its conversation,
    which is adopted for `owner` if there is none. Delivery then finds out from the history what was stored of it, adds
    what is missing, or leaves it ambiguous for an operator, who repairs it like any other write.

    Call it again with the same state to learn whether the write has settled meanwhile: it is recorded once. When
    `may_resume`, resume the run with the returned state (a `RunState` is changed in place), and do not run its tools
    again. A write that an operator abandoned or rolled back is never saved: that run cannot be resumed.

    `patience`: seconds to wait for the write (default WAIT_MAX). Raises InvalidInput, RemoteReadFailed,
    ConversationTaken; WriteNotSettled when another write of the session is in the way; RuntimeError in a transaction.
    """
    pending = pending_write(state)
    if pending is None or not is_undecided(pending):
        acknowledged = pending is not None and pending.get("append_acknowledged")
        return HandOver(without_pending_write(state) if acknowledged else state, may_resume=True)
    seconds = conf.WAIT_MAX if patience is None else patience
    row = await in_thread(Name(owner, conversation_id=pending["session_id"]).open)
    client = openai_client or await async_client_of(row)
    write = await in_thread(_known, row.pk, _key(pending))
    if write is None:
        write = await _found_or_recorded(row, pending, owner, client, seconds)
    if not write.settled and not write.needs_attention:
        with contextlib.suppress(WriteNotSettled):
            await operations.settled_session(row.pk, patience=seconds, client=client)
    write = await operations.aget_write(write.pk)
    saved = write.state == WriteState.SAVED
    return HandOver(without_pending_write(state) if saved else state, saved, write)


async def _found_or_recorded(
    row: ConversationSession, pending: dict[str, Any], owner: Any, client: Any, seconds: float
) -> WriteIntent:
    ours = await in_thread(_of_our_session, row.pk, pending)
    if ours is not None and not ours.settled:
        return ours
    await operations.settled_session(row.pk, patience=seconds, client=client)
    history = await read_plainly(pending["session_id"], client)
    if history.problem is not None:
        raise read_failed(history.problem)
    begins = positions(pending, history.items)
    if ours is not None and await in_thread(_begins_at_or_after, ours, begins, history.items):
        return ours
    place = await in_thread(_place, row, pending["items"], history.items, begins)
    return await in_thread(
        operations.take_over_append,
        row.pk,
        pending["items"],
        place,
        author=owner,
        idempotency_key=_key(pending),
    )


def _place(
    row: ConversationSession, items: list[dict[str, Any]], history: list[dict[str, Any]], begins: list[int]
) -> operations.Place:
    """Where the append stands in the history.

    Delivery looks for a chunk behind everything that the session has written. Where the session wrote more after the
    append that is taken over, that would not find it, so it is looked for here.
    """
    left_to_a_person = operations.Place(None, evidence={"positions": begins[:20], "items_read": len(history)})
    if len(begins) != 1:
        return left_to_a_person
    after, bound = history[begins[0] :], bound_ids(row, using=alias())
    anchor = history[begins[0] - 1]["id"] if begins[0] else ""
    if bound.isdisjoint(item["id"] for item in after):
        return operations.Place(anchor)
    batches = [items[first : first + API_ITEMS_PER_REQUEST] for first in range(0, len(items), API_ITEMS_PER_REQUEST)]
    findings = [match(batch, after, bound=bound) for batch in batches]
    if any(finding.verdict is not Verdict.SAVED for finding in findings):
        return left_to_a_person
    return operations.Place(anchor, [finding.ids for finding in findings])


def _key(pending: dict[str, Any]) -> str:
    body = [pending["session_id"], pending["items"], pending["before"]]
    return f"hand-over/{codec.digest(codec.encode(body))}"


def _known(session_id: uuid.UUID, key: str) -> WriteIntent | None:
    return WriteIntent.objects.using(alias()).filter(session_id=session_id, idempotency_key=key).first()


def _of_our_session(session_id: uuid.UUID, pending: dict[str, Any]) -> WriteIntent | None:
    """The newest append of the same items through a session of ours."""
    same = WriteIntent.objects.using(alias()).filter(
        session_id=session_id, kind=WriteKind.APPEND, body_digest=operations.digest_of_items(pending["items"])
    )
    return same.exclude(state__in=(WriteState.CANCELLED, WriteState.REFUSED)).order_by("sequence").last()


def _begins_at_or_after(write: WriteIntent, begins: list[int], history: list[dict[str, Any]]) -> bool:
    """Whether a saved write is the pending one, and not an earlier one with equal items."""
    ids = [item["id"] for item in history]
    first = write.chunks.db_manager(alias()).get(first_item=0).remote_ids[0]
    return first in ids and ids.index(first) >= min(begins, default=0)

"""What becomes of an append of which the API refuses a request. Requires the turn's transaction.

The API takes a batch whole or not at all (recorded), so a refused request stored nothing, and what it held can be sent
again in smaller pieces:

| the refusal names   | `stop`                               | `skip`                                       |
|---------------------|--------------------------------------|----------------------------------------------|
| an item             | the write is refused, and says which | that item is refused; what is around it goes on |
| no item, of several | halved: the first half is sent next  | the same                                     |
| no item, of one     | the write is refused at this item    | that item is refused; the rest goes on       |
| something else      | the write is refused                 | the same                                     |

Halves are sent from the left, so with `stop` nothing that comes after the refused item is ever stored. A request that
would be refused whatever it holds ends after MAX_REFUSALS_IN_A_ROW: then no item is to blame.
"""

from __future__ import annotations

import re

from convsessions.journal.turn import Turn
from convsessions.models import WriteChunk, WriteIntent
from convsessions.states import OutcomeKind, RefusalPolicy

MAX_REFUSALS_IN_A_ROW = 12
"""Requests of a write refused one after the other without naming an item; to halve 20 items down to one takes 5."""
REFUSING_STATUSES = (400, 404, 413, 422)

_ITEM = re.compile(r"items\[(\d{1,6})\](.*)", re.DOTALL)


def refused_items(turn: Turn, write: WriteIntent, chunk: WriteChunk, *, code: str, param: str) -> None:
    """Record that the API refused the request with `chunk`, which is `sending`, with this code and parameter."""
    named = _ITEM.fullmatch(param)
    if named is not None and int(named[1]) < chunk.item_count:
        _refuse_item(turn, write, chunk, int(named[1]), named[2], code)
    elif param not in {"", "items"} or _is_hopeless(turn, write):
        turn.refuse(write, chunk, code=code, param=param)
    elif chunk.item_count > 1:
        turn.chunk_not_applied(chunk)
        turn.split_chunk(chunk, (chunk.item_count + 1) // 2)
        turn.clear_hold(write)
    else:
        _refuse_item(turn, write, chunk, 0, "", code)


def end_append(turn: Turn, write: WriteIntent) -> None:
    """Settle an append of which every chunk is settled: saved, or refused if no item of it was taken."""
    if write.items_saved:
        turn.write_saved(write)
        return
    last = write.chunks.db_manager(turn.using).only("error_code", "error_param").get(first_item=write.items_total - 1)
    turn.refuse(write, None, code=last.error_code, param=last.error_param)


def _refuse_item(turn: Turn, write: WriteIntent, chunk: WriteChunk, position: int, field: str, code: str) -> None:
    """Refuse the item at `position` of `chunk`; `field`: its part that the API named, as in ``.content[0].text``."""
    param = f"items[{chunk.first_item + position}]{field}"
    if write.on_refusal != RefusalPolicy.SKIP:
        turn.refuse(write, chunk, code=code, param=param)
        return
    turn.chunk_not_applied(chunk)
    item = turn.split_chunk(chunk, position) if position else chunk
    if item.item_count > 1:
        turn.split_chunk(item, 1)
    turn.skip_chunk(write, item, code=code, param=param)


def _is_hopeless(turn: Turn, write: WriteIntent) -> bool:
    requests = write.requests.db_manager(turn.using).order_by("-pk")
    recent = requests.values_list("outcome", "status", "param")[:MAX_REFUSALS_IN_A_ROW]
    refusals = [
        outcome == OutcomeKind.NOT_APPLIED and status in REFUSING_STATUSES and not _ITEM.fullmatch(param)
        for outcome, status, param in recent
    ]
    return len(refusals) == MAX_REFUSALS_IN_A_ROW and all(refusals)

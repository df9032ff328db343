"""The Conversations API in memory, with faults: answers `RemoteCall` values with `Outcome` values.

It goes through the real table of outcomes, as if a server had answered, and keeps the two rules that the protocol
relies on: after its deadline a request is not sent, and one that was sent lands before deadline + SETTLE_SECONDS or
never.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from convsessions.remote import outcomes
from convsessions.remote.calls import (
    AppendItems,
    CreateConversation,
    DeleteConversation,
    DeleteItem,
    ListItems,
    RemoteCall,
    UpdateConversation,
)
from convsessions.remote.gateway import DEADLINE, STALE
from convsessions.remote.outcomes import Outcome

Item = dict[str, Any]


class Fault(enum.Enum):
    """What goes wrong with one request. Reads that would change nothing fail where a change would be lost."""

    NONE = enum.auto()
    REPLY_LOST = enum.auto()
    """Applied; the connection breaks."""
    REPLY_LATE = enum.auto()
    """Applied; the deadline comes before the reply."""
    ERROR_AFTER = enum.auto()
    """Applied; answered with 500."""
    LOST = enum.auto()
    """Not applied; the connection breaks."""
    ERROR_BEFORE = enum.auto()
    """Not applied; answered with 500."""
    LATE = enum.auto()
    """The connection breaks; applied a moment before the settle delay is over."""
    REFUSED_CONNECTION = enum.auto()
    RATE_LIMITED = enum.auto()
    BAD_KEY = enum.auto()
    REFUSED = enum.auto()
    """A definite no, 400, to an append. A deletion that the API says no to, it says no to at its first try."""
    REFUSED_UNNAMED = enum.auto()
    """The same, and it names no item."""
    TWICE = enum.auto()
    """Applied by a proxy that sent it twice; the reply is lost."""


BAD = "BAD"
"""An item with this in its text is always refused: by name, or not, as the length of the history has it."""
REFUSALS = {Fault.REFUSED, Fault.REFUSED_UNNAMED}
APPLIES = {Fault.NONE, Fault.REPLY_LOST, Fault.REPLY_LATE, Fault.ERROR_AFTER, Fault.TWICE}


@dataclass
class RemoteModel:
    """`now` gives the simulated time; `settle` is SETTLE_SECONDS."""

    now: Callable[[], float]
    spend: Callable[[float], None]
    settle: float
    conversations: dict[str, list[Item]] = field(default_factory=dict)
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    late: list[tuple[float, RemoteCall]] = field(default_factory=list)
    ids: int = 0
    refused: set[str] = field(default_factory=set)
    """Texts of items that it said no to: by name, or alone in their request."""

    def perform(self, call: RemoteCall, fault: Fault = Fault.NONE) -> Outcome:
        self.land()
        if self.now() >= call.not_after:
            return outcomes.never_sent(STALE)
        self.spend(0.01)
        if fault in REFUSALS and not isinstance(call, AppendItems):
            fault = Fault.NONE
        if not call.changes_remote:
            return self._read(call, fault)
        status, body = self._apply(call) if fault in APPLIES else (0, None)
        if fault is Fault.TWICE:
            self._apply(call)
        if fault is Fault.LATE:
            self.late.append((call.not_after + 0.9 * self.settle, call))
        return self._outcome(call, fault, status, body)

    def land(self) -> None:
        """Apply what was delayed until now."""
        due = [(moment, call) for moment, call in self.late if moment <= self.now()]
        self.late = [entry for entry in self.late if entry not in due]
        for _, call in due:
            self._apply(call)

    def _read(self, call: RemoteCall, fault: Fault) -> Outcome:
        if fault in {Fault.NONE, Fault.LATE, Fault.TWICE}:
            assert isinstance(call, ListItems)
            return outcomes.of_response(call, *self._list(call))
        return self._outcome(call, fault, 0, None)

    def _outcome(self, call: RemoteCall, fault: Fault, status: int, body: Any) -> Outcome:
        match fault:
            case Fault.NONE:
                return outcomes.of_response(call, status, {}, body)
            case Fault.ERROR_AFTER | Fault.ERROR_BEFORE:
                return outcomes.of_response(call, 500, {}, None)
            case Fault.RATE_LIMITED:
                return outcomes.of_response(call, 429, {"retry-after": "0.3"}, None)
            case Fault.BAD_KEY:
                return outcomes.of_response(call, 401, {}, {"error": {"code": "invalid_api_key"}})
            case Fault.REFUSED | Fault.REFUSED_UNNAMED:
                return outcomes.of_response(call, 400, {}, self._no(call, 0, named=fault is Fault.REFUSED))
            case Fault.REFUSED_CONNECTION:
                return outcomes.never_sent("ConnectError")
            case Fault.REPLY_LATE:
                self.spend(max(call.not_after - self.now(), 0.0))
                return outcomes.unknown(DEADLINE)
            case _:
                return outcomes.unknown("ReadError")

    def _apply(self, call: RemoteCall) -> tuple[int, Any]:
        if isinstance(call, CreateConversation):
            conversation_id = self._new_id("conv")
            self.conversations[conversation_id] = []
            self.metadata[conversation_id] = dict(call.metadata)
            return 200, {"id": conversation_id}
        items = self.conversations.get(call.conversation_id)
        if items is None:
            return 404, {"error": {"code": None, "param": None}}
        if isinstance(call, AppendItems):
            bad = [index for index, item in enumerate(json.loads(call.payload)) if BAD in item["content"]]
            if bad:
                return 400, self._no(call, bad[0], named=len(items) % 2 == 0)
            new = [{**item, "id": self._new_id("msg")} for item in json.loads(call.payload)]
            items += new
            return 200, {"data": new, "has_more": False}
        if isinstance(call, UpdateConversation):
            self.metadata[call.conversation_id] = dict(call.metadata)
            return 200, {"id": call.conversation_id}
        if isinstance(call, DeleteConversation):
            del self.conversations[call.conversation_id]
            return 200, {"deleted": True}
        assert isinstance(call, DeleteItem)
        kept = [item for item in items if item["id"] != call.item_id]
        if len(kept) == len(items):
            return 404, {"error": {"code": None, "param": None}}
        items[:] = kept
        return 200, {"id": call.conversation_id}

    def _no(self, call: RemoteCall, position: int, *, named: bool) -> Any:
        """The body of a refusal of the item at `position`."""
        assert isinstance(call, AppendItems)
        if named or call.count == 1:
            self.refused.add(json.loads(call.payload)[position]["content"])
        return {"error": {"code": "invalid_value", "param": f"items[{position}]" if named else None}}

    def _list(self, call: ListItems) -> tuple[int, dict[str, str], Any]:
        items = self.conversations.get(call.conversation_id)
        if items is None:
            return 404, {}, {"error": {"code": None, "param": None}}
        ordered = items if call.order == "asc" else items[::-1]
        start = 0
        if call.after:
            found = [index for index, item in enumerate(ordered) if item["id"] == call.after]
            if not found:
                return 404, {}, {"error": {"code": None, "param": "after"}}
            start = found[0] + 1
        page = ordered[start : start + min(call.limit, 7)]  # short pages, so that short histories have several
        return 200, {}, {"data": page, "has_more": start + len(page) < len(ordered)}

    def _new_id(self, prefix: str) -> str:
        self.ids += 1
        return f"{prefix}_{self.ids}"

    # -- others than us --------------------------------------------------------------------------------------------

    def texts(self, conversation_id: str | None) -> list[str]:
        self.land()
        return [item["content"] for item in self.conversations.get(conversation_id or "", [])]

    def append_foreign(self, conversation_id: str, text: str) -> None:
        item = {"type": "message", "role": "user", "content": text, "id": self._new_id("msg")}
        self.conversations[conversation_id].append(item)

    def delete_foreign(self, conversation_id: str, position: int) -> str | None:
        """Delete an item as somebody else would; returns its text.

        Of two equal items neither is touched: a copy that somebody tore apart looks like other people's items.
        """
        texts = self.texts(conversation_id)
        single = [index for index, text in enumerate(texts) if texts.count(text) == 1]
        if not single:
            return None
        return str(self.conversations[conversation_id].pop(single[position % len(single)])["content"])

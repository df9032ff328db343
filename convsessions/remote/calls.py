"""Requests to the Conversations API as frozen values.

The protocol yields them, a gateway performs them. `repr` shows ids, never content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import quote

from convsessions.items import codec
from convsessions.items.kinds import INCLUDABLE
from convsessions.states import Operation

INCLUDE = INCLUDABLE
"""Without these, content that is stored looks absent when read, so that nothing could be compared with it."""

PAGE_ITEMS = 100
"""The largest `limit` of a list request; 101 answers 400 (reported)."""

Query = Mapping[str, str | int | list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCall:
    """One request. It must have ended when `clock.now()` reaches `not_after` (seconds)."""

    operation: ClassVar[Operation]
    method: ClassVar[str] = "GET"
    changes_remote: ClassVar[bool] = False

    conversation_id: str
    not_after: float

    @property
    def path(self) -> str:
        return f"/conversations/{quote(self.conversation_id, safe='')}"

    @property
    def query(self) -> Query:
        return {}

    @property
    def body(self) -> bytes | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConversation(RemoteCall):
    operation: ClassVar[Operation] = Operation.CREATE_CONVERSATION
    method: ClassVar[str] = "POST"
    changes_remote: ClassVar[bool] = True

    conversation_id: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def path(self) -> str:
        return "/conversations"

    @property
    def body(self) -> bytes:
        return codec.encode({"metadata": self.metadata} if self.metadata else {}).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieveConversation(RemoteCall):
    operation: ClassVar[Operation] = Operation.RETRIEVE_CONVERSATION


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConversation(RemoteCall):
    """Replaces all metadata (recorded); doing it twice is harmless."""

    operation: ClassVar[Operation] = Operation.UPDATE_CONVERSATION
    method: ClassVar[str] = "POST"
    changes_remote: ClassVar[bool] = True

    metadata: Mapping[str, str] = field(repr=False)

    @property
    def body(self) -> bytes:
        return codec.encode({"metadata": self.metadata}).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteConversation(RemoteCall):
    operation: ClassVar[Operation] = Operation.DELETE_CONVERSATION
    method: ClassVar[str] = "DELETE"
    changes_remote: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendItems(RemoteCall):
    """`payload`: JSON array of `count` items, sent as it is."""

    operation: ClassVar[Operation] = Operation.APPEND_ITEMS
    method: ClassVar[str] = "POST"
    changes_remote: ClassVar[bool] = True

    payload: str = field(repr=False)
    count: int

    @property
    def path(self) -> str:
        # The name is written out: zero-argument super() does not work in a dataclass with slots.
        return f"/conversations/{quote(self.conversation_id, safe='')}/items"

    @property
    def query(self) -> Query:
        # The reply lists the items as stored; what it leaves out could not be compared with what was sent.
        return {"include": list(INCLUDE)}

    @property
    def body(self) -> bytes:
        return b'{"items":' + self.payload.encode() + b"}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListItems(RemoteCall):
    """A page of at most `limit` items after `after` (exclusive; empty: from the start) in `order`.

    `lenient`: whatever the list holds is taken, also what is no item: it must not hide the others from a reader.
    """

    operation: ClassVar[Operation] = Operation.LIST_ITEMS

    after: str = ""
    order: str = "asc"
    limit: int = PAGE_ITEMS
    include: Sequence[str] = INCLUDE
    lenient: bool = False

    @property
    def path(self) -> str:
        return f"/conversations/{quote(self.conversation_id, safe='')}/items"

    @property
    def query(self) -> Query:
        page: dict[str, str | int | list[str]] = {"order": self.order, "limit": self.limit}
        if self.include:
            page["include"] = list(self.include)
        return {**page, "after": self.after} if self.after else page


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteItem(RemoteCall):
    operation: ClassVar[Operation] = Operation.DELETE_ITEM
    method: ClassVar[str] = "DELETE"
    changes_remote: ClassVar[bool] = True

    item_id: str

    @property
    def path(self) -> str:
        return f"/conversations/{quote(self.conversation_id, safe='')}/items/{quote(self.item_id, safe='')}"


@dataclass(frozen=True, slots=True)
class Pause:
    """Not a request: wait for `seconds`, then go on."""

    seconds: float

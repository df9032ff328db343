"""`DjangoConversationsSession`: what `Runner.run(…, session=…)` takes, on top of the journal."""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import Callable
from typing import Any

from agents import OpenAIConversationsSession, SessionSettings, TResponseInputItem
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from convsessions import operations
from convsessions.conf import conf
from convsessions.delivery import threads
from convsessions.delivery.drivers import async_client_of
from convsessions.exceptions import WriteRefused
from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import CancelCause, WriteKind, WriteState

from .opening import Name, row_id
from .reading import read_items
from .retrying import Retries

LOOK_SECONDS = 10.0
"""How long `session_id` waits for the database where it has to ask."""


class DjangoConversationsSession(OpenAIConversationsSession):
    """An `OpenAIConversationsSession` whose writes are journaled, and survive timeouts, crashes and other writers.

    Give exactly one of `key` (the application's name for the session, unique per `owner`; recorded with its first
    use), `session` (a `ConversationSession` or its id) and `conversation_id` (an existing conversation, adopted).

    `owner`: a user or None. `openai_client`: an `openai.AsyncOpenAI` for the requests of this object; by default the
    one that ASYNC_CLIENT_FACTORY gives. Workers finish what this process leaves, with the client of CLIENT_FACTORY.
    `session_settings`: as the SDK has it. `patience`: seconds that a call waits for its write (default WAIT_MAX).
    `idempotency_key`: see below.

    **Writes** return once they are saved, and take effect in the order in which they were recorded, across all
    objects, processes and machines. They are sent from here, under the session's lease; where another process has
    that, they wait their turn. A call raises WriteNotSettled when its write has not settled within `patience`, or
    cannot without a person; the write has been recorded and goes on without the caller. It raises WriteRefused when
    the API refused the write, or a person cancelled it. A clear in another process supersedes a write that waits;
    that call returns as if it had come just before.

    **Cancellation** is raised once the request in flight has settled; workers do the rest. What was recorded is not
    taken back.

    **Retrying** a call that raised is safe. On the same object, the same call is a retry of the one that raised, unless
    another write succeeded in between. In another process or object, give both the same `idempotency_key`, for
    instance the id of the job: within it, the n-th call with the same items is the same write, so that a run which is
    repeated adds its input once. `Runner` does not retry session writes itself; it may resume a run whose write
    raised, and reads the history before that, for which the open write is waited for.

    **Reading** shows every write that was recorded before it, by whomever, and waits for those that are open.

    An object may be used in one event loop after the other. Its calls, also concurrent ones, are done one at a time.
    Nothing may be called inside a transaction: RuntimeError.
    """

    def __init__(
        self,
        *,
        key: str | None = None,
        session: ConversationSession | uuid.UUID | str | None = None,
        conversation_id: str | None = None,
        owner: Any = None,
        openai_client: Any = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        patience: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        # Not the parent's: it makes a client at once, whether or not there is a key.
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        self.patience = patience
        self._name = Name(owner, key, row_id(session), conversation_id)
        self._given_client = openai_client
        self._session_id = conversation_id
        self._row: ConversationSession | None = None
        self._retries = Retries(idempotency_key)
        self._order: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @property
    def session_id(self) -> str:
        """The id of the conversation. Raises ValueError as long as there is none: before the first saved write.

        Where this object has not been used yet, it asks the database, and blocks for as long as that takes.
        """
        if self._session_id is None:
            found = threads.submit(self._name.find).result(LOOK_SECONDS)
            self._session_id = None if found is None else found.conversation_id
        if self._session_id is None:
            raise ValueError("The session has no conversation yet; its first saved write creates it.")
        return self._session_id

    @session_id.setter
    def session_id(self, value: str) -> None:
        """From now on, stand for another conversation."""
        self._name, self._row, self._session_id = Name(self._name.owner, conversation_id=value), None, value

    @property
    def idempotency_key(self) -> str | None:
        """Within which the n-th call with the same items is the same write; setting it begins to count anew."""
        return self._retries.scope

    @idempotency_key.setter
    def idempotency_key(self, value: str | None) -> None:
        self._retries = Retries(value)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items, the oldest of them first; all without a limit, here or in `session_settings`.

        Items are as the API lists them, with what it leaves out unless asked (images, encrypted reasoning). Raises
        WriteNotSettled when a write is in the way; RemoteReadFailed.
        """
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is not None and limit <= 0:
            return []
        async with self._one_at_a_time():
            row = await self._open()
            row, items = await read_items(row.pk, limit, patience=self._patience(), client=await self._client_for(row))
            self._session_id = row.conversation_id
            return items  # type: ignore[return-value]  # the API's own objects, as the parent returns them

    async def add_items(self, items: list[TResponseInputItem], *, idempotency_key: str | None = None) -> None:
        """Append `items` in order, however many; returns once they are saved. Contract as the class says.

        `idempotency_key`: a second call with it, from anywhere, is the same write (IdempotencyConflict if its items
        are others). Raises InvalidItem when an item cannot be sent; then nothing is recorded.
        """
        if items:
            await self._write(WriteKind.APPEND, operations.append_items, idempotency_key, list(items))

    async def pop_item(self, *, idempotency_key: str | None = None) -> TResponseInputItem | None:
        """Remove the newest item and return it; None where there is none. Contract as the class says."""
        write = await self._write(WriteKind.POP, operations.pop_item, idempotency_key)
        popped: TResponseInputItem | None = write.popped
        return popped

    async def clear_session(self, *, idempotency_key: str | None = None) -> None:
        """Delete the conversation; the next append begins another one. Supersedes writes that wait."""
        await self._write(WriteKind.CLEAR, operations.clear_session, idempotency_key)

    async def _write(
        self, kind: WriteKind, record: Callable[..., WriteIntent], key: str | None, *items: list[TResponseInputItem]
    ) -> WriteIntent:
        async with self._one_at_a_time():
            with self._retries.key(kind, items) as own_key:
                row = await self._open()
                owner = self._name.owner
                write = await operations.write_through(
                    functools.partial(record, row.pk, *items, author=owner, idempotency_key=key or own_key),
                    patience=self._patience(),
                    client=await self._client_for(row),
                )
                self._session_id = write.session.conversation_id
                if write.state != WriteState.SAVED and write.cancel_cause != CancelCause.CLEAR:
                    raise WriteRefused(write)
                # Asked for here, so that after ContentUnreadable the same call is the same pop, and removes no other.
                _ = write.popped
                return write

    async def _get_session_id(self) -> str:
        await self._open()
        return self.session_id

    async def _open(self) -> ConversationSession:
        if self._row is None:
            await threads.refuse_transaction()
            self._row = await threads.in_thread(self._name.open)
        return self._row

    async def _client_for(self, row: ConversationSession) -> Any:
        return self._given_client or await async_client_of(row)

    def _patience(self) -> float:
        return conf.WAIT_MAX if self.patience is None else self.patience

    def _one_at_a_time(self) -> asyncio.Lock:
        """The lock that keeps this object's calls in their order, in the running event loop."""
        loop = asyncio.get_running_loop()
        if self._order is None or self._order[0] is not loop:
            self._order = loop, asyncio.Lock()
        return self._order[1]

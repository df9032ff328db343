"""The write that the Agents SDK keeps in a `RunState`, and where it belongs in a history.

Since schema 1.17 a state holds the one append of a resumed turn that was not acknowledged: its items, and digests of
the history's end before it. The SDK compares these with the history when the run is resumed, and raises "Cannot
reconcile the pending Session write" when they fit neither before nor after: a part was stored, somebody else appended,
or the API gave the items back in another form than they were sent.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from agents import RunState
from agents.run_internal.items import fingerprint_input_item

from convsessions.exceptions import InvalidInput

State = RunState[Any, Any] | dict[str, Any] | str
"""A run's state: the object, or what its `to_json` or `to_string` gave."""


def pending_write(state: State) -> dict[str, Any] | None:
    """The append that the state holds, if any. Raises InvalidInput where `state` is none of a run."""
    if isinstance(state, RunState):
        return None if state._pending_session_write is None else dict(state._pending_session_write)  # noqa: SLF001
    document = _document(state)
    pending: dict[str, Any] | None = document.get("pending_session_write")
    return pending


def is_undecided(pending: dict[str, Any]) -> bool:
    """Whether the append may have been stored or not. The SDK itself goes on with one that was never offered."""
    return not pending.get("held") and pending["before"] is not None and not pending.get("append_acknowledged")


def without_pending_write(state: State) -> State:
    """The state with the append acknowledged, as the SDK leaves it then: the object itself is changed, JSON is not."""
    if isinstance(state, RunState):
        pending = state._pending_session_write  # noqa: SLF001 - there is no public way
        if pending is not None:
            state._current_turn_persisted_item_count = pending["persisted_count"]  # noqa: SLF001
            state._pending_session_write = None  # noqa: SLF001
        return state
    document = copy.deepcopy(_document(state))
    pending_json = document.pop("pending_session_write", None)
    if pending_json is not None:
        document["current_turn_persisted_item_count"] = pending_json["persisted_count"]
    return json.dumps(document) if isinstance(state, str) else document


def positions(pending: dict[str, Any], history: Sequence[Any]) -> list[int]:
    """Every number of items after which the append can have begun, by the digests of what stood before it."""
    before: list[str] = pending["before"]
    digests = [_digest(item) for item in history]
    # The SDK looked at one item more than it was about to add: fewer digests were all there was.
    if len(before) <= len(pending["items"]):
        return [len(before)] if digests[: len(before)] == before else []
    return [end for end in range(len(before), len(digests) + 1) if digests[end - len(before) : end] == before]


def _digest(item: Any) -> str:
    fingerprint = fingerprint_input_item(item, ignore_ids_for_matching=True) or repr(item)
    return hashlib.sha256(fingerprint.encode("utf-8")).hexdigest()


def _document(state: dict[str, Any] | str) -> dict[str, Any]:
    try:
        document = json.loads(state) if isinstance(state, str) else state
    except ValueError:
        document = None
    if not isinstance(document, dict) or "$schemaVersion" not in document:
        raise InvalidInput("state", "give a RunState, or what its to_json or to_string gave")
    return document

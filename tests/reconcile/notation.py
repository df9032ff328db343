"""Histories as strings: each letter is a message of that text, and its id is its position in the history.

``~`` after a letter marks an altered copy: the same text, but a field that was sent is missing. So ``xA~B`` is three
items with the ids "0", "1" and "2", of which the second is A as a server might have rewritten it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from convsessions.reconcile.matching import Item
from convsessions.remote import outcomes
from convsessions.remote.calls import ListItems
from convsessions.remote.outcomes import Outcome

TOKENS = re.compile(r"\w~?")


def sent(text: str) -> list[Item]:
    return [{"role": "user", "content": [{"type": "input_text", "text": one, "mark": 1}]} for one in text]


def stored(text: str) -> list[Item]:
    """`text` as the server lists it: with ids, types and a status."""
    return [_stored(token, str(position)) for position, token in enumerate(TOKENS.findall(text))]


def _stored(token: str, item_id: str) -> Item:
    part: dict[str, Any] = {"type": "input_text", "text": token[0], "mark": 1}
    if token.endswith("~"):
        del part["mark"]
    return {"id": item_id, "type": "message", "status": "completed", "role": "user", "content": [part]}


def page(items: list[Item], *, has_more: bool = False) -> Outcome:
    return outcomes.applied({"object": "list", "data": items, "has_more": has_more}, status=200)


def cursor_gone() -> Outcome:
    error = {"error": {"code": None, "param": "after"}}
    return outcomes.of_response(ListItems(conversation_id="conv_1", after="x", not_after=0.0), 404, {}, error)


def answer_from(items: list[Item], request: ListItems) -> Outcome:
    """The page of `items` that a faultless server gives."""
    ids = [item["id"] for item in items]
    if request.after and request.after not in ids:
        return cursor_gone()
    start = ids.index(request.after) + 1 if request.after else 0
    end = start + request.limit
    return page(items[start:end], has_more=end < len(items))


def drive(requests: Any, answers: Iterator[Outcome] | Any) -> tuple[Any, list[Any]]:
    """Run a sans-I/O reading: `answers` gives, or is called for, the outcome of each request; returns both ends."""
    asked: list[Any] = []
    outcome = None
    while True:
        try:
            request = requests.send(outcome)
        except StopIteration as end:
            return end.value, asked
        asked.append(request)
        outcome = answers(request) if callable(answers) else next(answers)

"""The rows of an alignment as an operator reads them: words for marks, cut texts, and where content differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from convsessions.items.comparison import differences

from .alignment import Mark, Row
from .content import label_of, shown_item, text_of
from .owners import Owner

MOST_TEXT = 160
"""Characters of an item that equals its counterpart."""
MOST_COMPARED = 1200
"""Characters of two items that are compared word by word."""

Segment = tuple[str, str]
"""How a piece of text is to be marked ("", "same": not at all, "gone", "new"), and the piece."""

WORDS = {
    Mark.FOUND: ("=", gettext_lazy("found")),
    Mark.ALTERED: ("≠", gettext_lazy("found, altered")),
    Mark.MISSING: ("\u2013", gettext_lazy("missing")),
    Mark.UNREAD: ("?", gettext_lazy("not read")),
    Mark.EXTRA: ("+", gettext_lazy("extra copy")),
    Mark.OTHER: ("·", gettext_lazy("another write's")),
    Mark.FOREIGN: ("*", gettext_lazy("foreign")),
    Mark.GAP: ("…", ""),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table. `sent` and `stored` are empty for those who may not see content.

    `position`: in the write, from 0; `paths`: where the stored item differs from the sent one.
    """

    mark: str
    symbol: str
    word: str
    position: int | None
    label: str
    remote_id: str
    sent: Sequence[Segment] = field(repr=False)  # Django logs contexts of templates at DEBUG
    stored: Sequence[Segment] = field(repr=False)
    paths: Sequence[str]
    owner: Owner | None
    ids: Sequence[str]


def lines_of(rows: Sequence[Row], *, first_item: int, with_text: bool) -> list[Line]:
    """`rows` in words; `first_item`: the position of the chunk in its write."""
    return [_line(row, first_item, with_text) for row in rows]


def _line(row: Row, first_item: int, with_text: bool) -> Line:
    symbol, word = WORDS[row.mark]
    item = row.sent or row.stored
    sent, stored = _texts(row) if with_text else ((), ())
    return Line(
        mark=str(row.mark),
        symbol=symbol,
        word=_word(row, str(word), first_item),
        position=None if row.index is None else first_item + row.index,
        label=label_of(item) if item else "",
        remote_id=row.remote_id,
        sent=sent,
        stored=stored,
        paths=differences(row.sent, row.stored) if row.mark is Mark.ALTERED and row.sent and row.stored else (),
        owner=row.owner,
        ids=row.ids,
    )


def _word(row: Row, word: str, first_item: int) -> str:
    if row.mark is Mark.GAP:
        text = ngettext("%(number)d more item of others", "%(number)d more items of others", len(row.ids))
        return text % {"number": len(row.ids)}
    if row.mark is Mark.EXTRA and row.index is not None:
        return _("extra copy of item %(position)d") % {"position": first_item + row.index}
    if row.like is not None:
        return _("foreign, though equal to item %(position)d") % {"position": first_item + row.like}
    if row.owner and row.owner.mine:
        return _("this write's, saved before")
    return word


def _texts(row: Row) -> tuple[Sequence[Segment], Sequence[Segment]]:
    if row.mark is Mark.ALTERED and row.sent and row.stored:
        return compared(text_of(row.sent), text_of(row.stored))
    # An extra copy stands in the remote only: on the journal's side there is nothing beside it.
    sent = _cut(row.sent) if row.sent and row.mark is not Mark.EXTRA else ()
    return sent, _cut(row.stored) if row.stored else ()


def _cut(item: dict[str, Any]) -> Sequence[Segment]:
    shown = shown_item(0, item, MOST_TEXT)
    return (("same", f"{shown.text}…" if shown.cut else shown.text),)


def compared(sent: str, stored: str) -> tuple[Sequence[Segment], Sequence[Segment]]:
    """Both texts in pieces, those that the other lacks marked; only their beginnings where they are long."""
    ours, theirs = (re.split(r"(\s+)", text[:MOST_COMPARED]) for text in (sent, stored))
    steps = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    left = tuple(_pieces((("same" if step == "equal" else "gone"), ours[a:b]) for step, a, b, _c, _d in steps))
    right = tuple(_pieces((("same" if step == "equal" else "new"), theirs[c:d]) for step, _a, _b, c, d in steps))
    return left, right


def _pieces(pieces: Iterator[tuple[str, list[str]]]) -> Iterator[Segment]:
    for kind, words in pieces:
        if text := "".join(words):
            yield kind, text

"""The resolutions of an ambiguous write in sentences that say exactly what each will do, with numbers and ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from convsessions.exceptions import ContentUnreadable
from convsessions.states import Resolution, Verdict, WriteKind

from .display import CONTENT_UNREADABLE, span
from .situation import Situation


@dataclass(frozen=True, slots=True)
class Choice:
    """`promise`: what it will do; `ids`: the remote items it is about; `deletes`: whether it deletes them."""

    value: str
    title: Any
    promise: str
    ids: Sequence[str] = ()
    deletes: bool = False


def choices_of(situation: Situation) -> list[Choice]:
    """What can be done, in the order that the evidence suggests."""
    return [_CHOICES[resolution](situation) for resolution in situation.possible]


def reason_of(situation: Situation) -> str:
    """The verdict, as a sentence about this write."""
    if isinstance(situation.problem, ContentUnreadable):
        return str(CONTENT_UNREADABLE)
    if situation.problem is not None:
        return _("The remote history could not be read just now: %(code)s.") % {"code": situation.problem.code}
    evidence = situation.evidence
    values = {
        "items": _where(situation),
        "copies": len(evidence.get("runs") or ()),
        "parts": len(evidence.get("parts") or ()),
        "read": evidence.get("items_read", 0),
        "total": situation.chunk.item_count if situation.chunk else 0,
    }
    if situation.verdict == Verdict.PARTIAL and values["parts"] >= values["total"]:
        return _("All of %(items)s are there, but in altered form, or not one after the other in order.") % values
    return _REASONS[Verdict(situation.verdict)] % values


_REASONS = {
    Verdict.SAVED: gettext_lazy("Stored exactly once by now: %(items)s. Nothing is missing and nothing is double."),
    Verdict.ABSENT: gettext_lazy(
        "Nothing was found of %(items)s, among the %(read)d items that follow where they belong."
    ),
    Verdict.PARTIAL: gettext_lazy(
        "Of the %(total)d items sent (%(items)s), %(parts)d that look like ours were found: the others are missing, or "
        "were stored in altered form."
    ),
    Verdict.DUPLICATED: gettext_lazy("Stored more than once: %(items)s. A request was carried out again."),
    Verdict.CONTESTED: gettext_lazy(
        "Something that equals %(items)s was found, but another write could explain it too, or copies overlap."
    ),
    Verdict.UNDECIDED: gettext_lazy("It could not be decided what became of %(items)s."),
}


def _where(situation: Situation) -> str:
    if situation.chunk is not None:
        return span(situation.chunk.first_item, situation.chunk.item_count)
    if situation.sections:
        return ", ".join(span(part.chunk.first_item, part.chunk.item_count) for part in situation.sections)
    return span(0, max(situation.write.items_total, 1))


def _then(situation: Situation) -> str:
    """What follows once the chunk in question is settled."""
    if not situation.unsent:
        return " " + _("Then the write is complete.")
    first, last = situation.unsent_numbers
    items = {"items": span(situation.first_unsent, situation.unsent), "first": first, "last": last}
    if situation.in_doubt:
        return " " + _("Then what comes after it (%(items)s) is looked for, and sent where it is not there.") % items
    if first == last:
        return " " + _("Then chunk %(first)d (%(items)s) is sent.") % items
    return " " + _("Then chunks %(first)d\u2013%(last)d (%(items)s) are sent.") % items


def _sent(situation: Situation) -> str:
    """The chunk in question, by its number and its items."""
    if situation.chunk is None:
        return _where(situation)
    number = situation.numbers[situation.chunk.pk]
    return _("chunk %(number)d (%(items)s)") % {"number": number, "items": _where(situation)}


def _accept(situation: Situation) -> Choice:
    if situation.write.kind == WriteKind.POP:
        return Choice("accept", _("Accept: it was done"), _("Delete nothing, and close the write as done."))
    title = _("Accept: it is saved")
    runs, parts, chunk = situation.evidence.get("runs") or (), situation.evidence.get("parts") or (), situation.chunk
    if chunk is None:
        return Choice(
            "accept",
            title,
            _("Leave the remote as it is and close the write as saved. Extra copies stay."),
            situation.extra,
        )
    if not runs:
        text = _("Record %(items)s as saved under the %(number)d ids that look like ours; nothing of it is sent again.")
        return Choice(
            "accept", title, text % {"items": _sent(situation), "number": len(parts)} + _then(situation), parts
        )
    text = _("Record %(items)s as saved under the ids that were found; nothing is deleted.") % {
        "items": _sent(situation)
    }
    if situation.extra:
        text += " " + _("The extra copies stay in the conversation, where a model reads them.")
    return Choice("accept", title, text + _then(situation), runs[0])


def _remove_duplicates(situation: Situation) -> Choice:
    ids = situation.extra
    text = ngettext(
        "Keep the first copy and delete %(number)d remote item.",
        "Keep the first copy and delete %(number)d remote items.",
        len(ids),
    )
    return Choice(
        "remove_duplicates",
        _("Remove the extra copies"),
        text % {"number": len(ids)} + _then(situation),
        ids,
        deletes=True,
    )


def _resend(situation: Situation) -> Choice:
    if situation.write.kind == WriteKind.POP:
        return Choice(
            "resend",
            _("Pop now: it was not done"),
            _("Delete the item that is the newest one then, and return it."),
            deletes=True,
        )
    text = _("Send %(items)s again, at the end of the conversation.") % {"items": _sent(situation)}
    parts = situation.evidence.get("parts") or ()
    if parts:
        text += " " + ngettext(
            "The %(number)d item already stored for them stays, too.",
            "The %(number)d items already stored for them stay, too.",
            len(parts),
        ) % {"number": len(parts)}
    return Choice("resend", _("Send again: it is not saved"), text + _then(situation), parts)


def _recheck(situation: Situation) -> Choice:
    text = _(
        "Have a worker read the history again. Found exactly once, it counts as saved; proven absent, it is sent "
        "again; otherwise the write comes back here."
    )
    return Choice("recheck", _("Check again later"), text)


def _rollback(situation: Situation) -> Choice:
    ids = situation.present
    text = ngettext(
        "Delete %(number)d remote item, everything found of this write, then cancel the write.",
        "Delete %(number)d remote items, everything found of this write, then cancel the write.",
        len(ids),
    )
    return Choice("rollback", _("Roll back: delete what is there"), text % {"number": len(ids)}, ids, deletes=True)


def _abandon(situation: Situation) -> Choice:
    write = situation.write
    text = _(
        "Delete nothing and send nothing more; cancel the write, with %(saved)d of its %(total)d items recorded as "
        "saved."
    )
    return Choice(
        "abandon",
        _("Abandon: leave the remote as it is"),
        text % {"saved": write.items_saved, "total": write.items_total},
    )


_CHOICES: dict[Resolution, Callable[[Situation], Choice]] = {
    Resolution.ACCEPT: _accept,
    Resolution.REMOVE_DUPLICATES: _remove_duplicates,
    Resolution.RESEND: _resend,
    Resolution.RECHECK: _recheck,
    Resolution.ROLLBACK: _rollback,
    Resolution.ABANDON: _abandon,
}

"""The evidence of a reconciliation, as sentences. It holds ids only, never content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from convsessions.states import HoldCode


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence, and the remote ids that it speaks of."""

    text: str
    ids: Sequence[str] = ()


def facts_of(evidence: Mapping[str, Any]) -> list[Fact]:
    """What an evidence says, the most telling first; unknown keys are passed over."""
    return [*_runs(evidence), *_others(evidence), *_halves(evidence), *_reading(evidence)]


def _runs(evidence: Mapping[str, Any]) -> list[Fact]:
    extra, facts = set(evidence.get("extra") or ()), []
    for run in evidence.get("runs") or ():
        copy = (
            _("An extra copy in full: %(number)d items.")
            if extra.issuperset(run)
            else _("Found in full: %(number)d items.")
        )
        facts.append(Fact(copy % {"number": len(run)}, run))
    if reply := evidence.get("reply"):
        facts.append(Fact(_("The API confirmed %(number)d items.") % {"number": len(reply)}, reply))
    if altered := evidence.get("altered"):
        text = ngettext(
            "%(number)d item was stored in altered form.", "%(number)d items were stored in altered form.", len(altered)
        )
        facts.append(Fact(text % {"number": len(altered)}, altered))
    return facts


def _others(evidence: Mapping[str, Any]) -> list[Fact]:
    facts, parts, foreign = [], evidence.get("parts") or (), evidence.get("foreign") or ()
    if parts and not evidence.get("altered"):
        text = ngettext("%(number)d item looks like ours.", "%(number)d items look like ours.", len(parts))
        facts.append(Fact(text % {"number": len(parts)}, parts))
    if number := evidence.get("foreign_count"):
        text = ngettext("%(number)d foreign item.", "%(number)d foreign items.", number)
        facts.append(Fact(text % {"number": number}, foreign))
    return facts


def _halves(evidence: Mapping[str, Any]) -> list[Fact]:
    halves = evidence.get("halves") or ()
    text = ngettext("%(number)d half of a pair.", "%(number)d halves of pairs.", len(halves))
    return [Fact(text % {"number": len(halves)}, [half["id"] for half in halves])] if halves else []


def _reading(evidence: Mapping[str, Any]) -> list[Fact]:
    facts = []
    code = evidence.get("code")
    if code == HoldCode.CONTENT:
        facts.append(Fact(_("The content in the journal could not be decrypted.")))
    elif code:
        facts.append(Fact(_("The history could not be read: %(code)s.") % {"code": code}))
    if (number := evidence.get("items_read")) is not None:
        text = ngettext(
            "%(number)d item was read after the anchor.", "%(number)d items were read after the anchor.", number
        )
        facts.append(Fact(text % {"number": number}))
    if evidence.get("anchor_gone"):
        facts.append(Fact(_("The anchor was deleted; the whole history was read.")))
    return facts

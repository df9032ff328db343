"""Rows of the outcome table, in short."""

from __future__ import annotations

from convsessions.remote.outcomes import Then
from convsessions.states import HoldCode, OutcomeKind

from .conftest import stored

STORED = stored("msg_1", "msg_2")
APPLIED = (OutcomeKind.APPLIED, Then.PROCEED, HoldCode.NONE)
UNKNOWN = (OutcomeKind.UNKNOWN, Then.RECONCILE, HoldCode.NONE)
REFUSED = (OutcomeKind.NOT_APPLIED, Then.REFUSE, HoldCode.NONE)
NEVER_SENT = (OutcomeKind.NOT_APPLIED, Then.RETRY, HoldCode.UNREACHABLE)


def row(outcome):
    return outcome.kind, outcome.then, outcome.hold


def held(code):
    return OutcomeKind.NOT_APPLIED, Then.HOLD, code

"""What support needs to look into a write, as plain text to copy: ids, request ids and times. No content, no keys."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.utils import timezone

from convsessions.models import Reconciliation, RequestAttempt, WriteIntent

NEWEST = 100
"""Requests, and reconciliations, that are told."""


def details_of(write: WriteIntent) -> str:
    """Lines of ``name: value``, in English for whoever gets them; two queries."""
    return "\n".join([*_head(write), "", "requests (UTC):", *_requests(write), "", "looks (UTC):", *_looks(write)])


def _head(write: WriteIntent) -> Iterator[str]:
    facts = {
        "write": write.pk,
        "session": write.session_id,
        "conversation": write.session.conversation_id,
        "kind": write.kind,
        "state": write.state,
        "held": write.hold_code,
        "error": " ".join(filter(None, (write.error_code, write.error_param))),
        "sequence": write.sequence,
        "generation": write.generation,
        "items": f"{write.items_saved} of {write.items_total} saved" if write.items_total else "",
        "target": write.target_id,
        "recorded": _utc(write.created_at),
        "begun": _utc(write.started_at),
        "settled": _utc(write.settled_at),
    }
    return (f"{name}: {value}" for name, value in facts.items() if value not in (None, ""))


def _requests(write: WriteIntent) -> list[str]:
    rows = write.requests.order_by("-pk").select_related("chunk")
    rows = rows.defer("chunk__payload", "chunk__original", "chunk__remote_ids")
    return [_request(row) for row in reversed(list(rows[:NEWEST]))] or ["none"]


def _request(row: RequestAttempt) -> str:
    chunk = row.chunk
    items = f"items {chunk.first_item}-{chunk.first_item + chunk.item_count - 1}" if chunk else ""
    end = f"ended {_utc(row.finished_at)}" if row.finished_at else f"deadline {_utc(row.deadline_at)}"
    parts = (_utc(row.sent_at), row.operation, items, row.target_id, row.outcome or "no outcome", end, row.status)
    return _joined(*parts, row.code, row.param, row.request_id or "no request id")


def _looks(write: WriteIntent) -> list[str]:
    return [_look(row) for row in reversed(list(write.reconciliations.order_by("-pk")[:NEWEST]))] or ["none"]


def _look(row: Reconciliation) -> str:
    runs = [f"run {' '.join(run)}" for run in row.evidence.get("runs") or ()]
    parts = [f"parts {' '.join(row.evidence['parts'])}"] if row.evidence.get("parts") else []
    read = f"{row.evidence['items_read']} items read" if "items_read" in row.evidence else ""
    return _joined(_utc(row.created_at), row.verdict, row.resolution, row.evidence.get("act"), read, *runs, *parts)


def _joined(*parts: Any) -> str:
    return " | ".join(str(part) for part in parts if part not in (None, ""))


def _utc(moment: dt.datetime | None) -> str:
    if moment is None:
        return ""
    aware = moment if timezone.is_aware(moment) else timezone.make_aware(moment)
    return aware.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

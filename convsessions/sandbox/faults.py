"""The supply of faults: set, listed, removed and, one use at a time, taken by requests."""

from __future__ import annotations

from typing import Any

from django.db.models import F, Q

from convsessions.items import codec

from .models import SandboxFault

OPERATIONS = frozenset(
    {
        "create_conversation",
        "retrieve_conversation",
        "update_conversation",
        "delete_conversation",
        "append_items",
        "list_items",
        "retrieve_item",
        "delete_item",
    }
)

ANY = ""
KINDS: dict[str, str] = {
    # kind -> the operation that it means when none is named
    "lost_before": ANY,
    "lost_after": ANY,
    "error_before": ANY,
    "error_after": ANY,
    "hang_before": ANY,
    "hang_after": ANY,
    "hang_lost": ANY,
    "latency": ANY,
    "trickle": ANY,
    "truncated": ANY,
    "html": ANY,
    "html_before": ANY,
    "rate_limited": ANY,
    "quota": ANY,
    "bad_key": ANY,
    "forbidden": ANY,
    "locked": "append_items",
    "late_apply": "append_items",
    "fewer_ids": "append_items",
    "twice": "append_items",
    "foreign": "append_items",
    "rewritten": "append_items",
    "lossy": "append_items",
    "fussy": "append_items",
    "empty_page": "list_items",
    "stuck_cursor": "list_items",
    "read_error": "list_items",
    "stale_read": "list_items",
}

_COLUMNS = {"operation", "conversation", "skip", "times"}
OPTIONS = frozenset(
    {
        *("seconds", "status", "retry_after", "body", "code", "param", "honest", "lost"),
        *("items", "where", "field", "text", "count"),
    }
)


def set_fault(kind: str, **options: Any) -> SandboxFault:
    """Orders a fault of `kind`. Raises ValueError for an unknown kind, operation or option.

    For every kind: `operation` and `conversation` it is for ("": any), `times` (None: until removed) and `skip`
    (matching requests to let pass first). The other options belong to the kinds, see `convsessions.sandbox.mischief`.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no fault {kind!r}")
    if unknown := options.keys() - _COLUMNS - OPTIONS:
        raise ValueError(f"a fault has no option {sorted(unknown)}")
    columns = {name: options[name] for name in _COLUMNS & options.keys()}
    columns["operation"] = columns.get("operation") or KINDS[kind]
    _check_operation(kind, columns["operation"])
    if kind == "lossy" and not options.get("field"):
        raise ValueError("which field is to be lost?")
    if kind == "fussy" and not options.get("text"):
        raise ValueError("which text is to be refused?")
    rest = {name: value for name, value in options.items() if name in OPTIONS}
    return SandboxFault.objects.create(kind=kind, options=codec.encode(rest), **columns)


def _check_operation(kind: str, operation: str) -> None:
    if operation not in OPERATIONS | {ANY}:
        raise ValueError(f"there is no operation {operation!r}")
    if KINDS[kind] == "list_items" != operation:
        raise ValueError(f"{kind} is for list_items only")


def clear_faults() -> None:
    """Removes all faults; requests that have taken one already are not changed."""
    SandboxFault.objects.all().delete()


def claim(operation: str, conversation_id: str) -> SandboxFault | None:
    """Takes one use of the oldest fault that fits, if there is one."""
    matching = SandboxFault.objects.filter(
        Q(times=None) | Q(times__gt=0),
        operation__in=[operation, ANY],
        conversation__in=[conversation_id[:64], ANY],
    )
    return next((fault for fault in matching if not _skipped(fault) and _taken(fault)), None)


def _skipped(fault: SandboxFault) -> bool:
    """Whether this request is one of those to let pass. Conditional, for other requests count down the same number."""
    rows = SandboxFault.objects.filter(pk=fault.pk, skip__gt=0)
    return fault.skip > 0 and bool(rows.update(skip=F("skip") - 1))


def _taken(fault: SandboxFault) -> bool:
    """Whether a use was left for us: of two requests at the last use, one finds no row to change."""
    if fault.times is None:
        return True
    return bool(SandboxFault.objects.filter(pk=fault.pk, times__gt=0).update(times=F("times") - 1))

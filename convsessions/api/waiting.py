"""The answer to a write: 202 until it has settled, and as long as the client prefers to wait for that (RFC 7240)."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from django.db import connections
from rest_framework.request import Request
from rest_framework.response import Response

from convsessions import operations
from convsessions.conf import conf
from convsessions.exceptions import WriteNotSettled
from convsessions.models import WriteIntent
from convsessions.states import WriteKind, WriteState

from . import rows
from .access import Act, SessionAccess
from .linking import link
from .serializers import WriteSerializer

POLL_SECONDS = 1
_WAIT = re.compile(r"""\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?""", re.IGNORECASE)


def preferred_wait(request: Request) -> int | None:
    """The seconds of ``Prefer: wait=N``; the first counts, what cannot be understood is ignored (RFC 7240 §2)."""
    for preference in request.headers.get("Prefer", "").split(","):
        found = _WAIT.fullmatch(preference)
        if found:
            return int(found[1])
    return None


def answer(request: Request, write: WriteIntent, access: SessionAccess, *, replayed: bool = False) -> Response:
    """The write as the body, after the wait that the client prefers; 201 for an append that is saved.

    Must be called after the write is committed. Inside somebody else's transaction it is not committed, so waiting
    would be in vain and would hold locks: then it answers at once, and says so by leaving out `Preference-Applied`.
    """
    headers = wait(request, write)
    shown = rows.progress(write.pk)
    headers["Location"] = link(request, "write", write_id=shown.pk)
    headers |= later(shown)
    if replayed:
        headers["Idempotent-Replayed"] = "true"
    return Response(represent(shown, access), status=_status(shown), headers=headers)


def progress(request: Request, write: WriteIntent, access: SessionAccess) -> Response:
    """The write for somebody who asks how far it is: 200 whatever its state, after the wait that the client prefers."""
    headers = wait(request, write)
    shown = rows.progress(write.pk)
    headers |= later(shown)
    return Response(represent(shown, access), headers=headers)


def represent(write: WriteIntent, access: SessionAccess) -> Any:
    """The body of a write for this user: content and reasons only for those who may see them."""
    context = {"content": access.allows(Act.READ_ITEMS, write.session), "reasons": access.is_staff}
    return WriteSerializer(write, context=context).data


def wait(request: Request, write: WriteIntent) -> dict[str, str]:
    """Wait as long as the client prefers, if that can help; returns the headers that say so."""
    asked = preferred_wait(request)
    if asked is None or _in_transaction():
        return {}
    seconds = min(asked, conf.WAIT_MAX)
    with contextlib.suppress(WriteNotSettled):
        operations.wait_for_write(write.pk, timeout=seconds)
    return {"Preference-Applied": f"wait={int(seconds)}"}


def later(write: WriteIntent) -> dict[str, str]:
    """The header that says when to look again, for a write that is open."""
    return {} if write.settled else {"Retry-After": str(POLL_SECONDS)}


def _in_transaction() -> bool:
    return any(connection.in_atomic_block for connection in connections.all(initialized_only=True))


def _status(write: WriteIntent) -> int:
    if not write.settled:
        return 202
    return 201 if write.kind == WriteKind.APPEND and write.state == WriteState.SAVED else 200

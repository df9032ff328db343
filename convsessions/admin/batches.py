"""What became of a selection that was checked again: kept in the operator's browser session, followed until it is done.

Nothing is counted along: the page asks the journal anew each time, so that it is right whoever else was at work.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from convsessions.models import Reconciliation, WriteIntent

from .display import badge, state_badge, why
from .timeline import VERDICTS

if TYPE_CHECKING:
    from .writes import WriteAdmin

SESSION_KEY = "convsessions_batches"
MOST_KEPT = 5
"""Batches kept for an operator, the newest."""
FOLLOWED_SECONDS = 900
"""After so long the page no longer loads itself anew."""


def newest_look() -> int:
    """What is concluded later than this, when asked before a batch is submitted, is what the batch brought about."""
    return Reconciliation.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def remember(request: HttpRequest, checked: list[Any], skipped: list[tuple[Any, str]], *, after: int) -> str:
    """Keep a batch just submitted; returns its token. `skipped`: ids, each with why; `after`: see `newest_look`."""
    token = uuid.uuid4().hex
    batch = {
        "at": timezone.now().timestamp(),
        "after": after,
        "checked": [str(pk) for pk in checked],
        "skipped": [[str(pk), reason] for pk, reason in skipped],
    }
    kept = request.session.get(SESSION_KEY, {})
    request.session[SESSION_KEY] = {**dict(list(kept.items())[-MOST_KEPT + 1 :]), token: batch}
    return token


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one write; `waiting`: nothing yet."""

    write: WriteIntent
    badge: SafeString
    verdict: SafeString | str
    text: Any
    waiting: bool = False


def show(model_admin: WriteAdmin, request: HttpRequest, token: str) -> HttpResponse:
    """The page of one batch. Raises Http404 for one that is not this browser's."""
    batch = request.session.get(SESSION_KEY, {}).get(token)
    if batch is None:
        raise Http404
    results = _results(batch)
    waiting = sum(result.waiting for result in results)
    age = timezone.now().timestamp() - batch["at"]
    return model_admin.page(
        request,
        "writeintent/batch.html",
        title=gettext("Writes checked again"),
        original=None,
        results=results,
        waiting=waiting,
        done=len(batch["checked"]) - waiting,
        checked=len(batch["checked"]),
        skipped=len(batch["skipped"]),
        follow=waiting > 0 and age < FOLLOWED_SECONDS,
    )


def _results(batch: dict[str, Any]) -> list[Result]:
    """Two queries, whatever the size of the batch."""
    why_skipped = dict(batch["skipped"])
    ids = [*batch["checked"], *why_skipped]
    writes = WriteIntent.objects.select_related("session").defer("popped", "doomed_ids", "half_pairs").in_bulk(ids)
    looks = Reconciliation.objects.filter(write__in=batch["checked"], pk__gt=batch["after"]).exclude(verdict="")
    verdicts = dict(looks.order_by("pk").values_list("write_id", "verdict"))
    found = [writes[uuid.UUID(pk)] for pk in ids if uuid.UUID(pk) in writes]
    return [_result(write, verdicts.get(write.pk), why_skipped.get(str(write.pk))) for write in found]


def _result(write: WriteIntent, verdict: str | None, skipped: str | None) -> Result:
    state = state_badge(write)
    if skipped is not None:
        return Result(write, state, "", gettext("skipped: %(why)s") % {"why": skipped})
    if verdict:
        label = dict(Reconciliation._meta.get_field("verdict").flatchoices)[verdict]  # noqa: SLF001 - documented
        return Result(write, state, badge(VERDICTS.get(verdict, "none"), label), why(write))
    if write.settled or write.needs_attention:
        return Result(write, state, "", why(write))
    return Result(write, state, "", _("waits for a worker"), waiting=True)

"""What can be done with one write without looking at the remote: each verb on a page that asks before it acts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.db import router, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from convsessions import operations
from convsessions.exceptions import IllegalMove, InvalidInput, SessionDeleted, WriteNotFound
from convsessions.models import WriteIntent
from convsessions.states import WriteState

from .display import exact

if TYPE_CHECKING:
    from .writes import WriteAdmin

Text = str | Promise


class ReasonForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"), max_length=2000, strip=True, help_text=_("For those who read this later.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """`refusal` says why a write does not allow it ("": it does); `promise` what it will do, exactly."""

    name: str
    permission: str
    title: Text
    done: Text
    refusal: Callable[[WriteIntent], Text]
    promise: Callable[[WriteIntent], Text]
    act: Callable[[WriteIntent, Any, str], WriteIntent]
    ids: Callable[[WriteIntent], Sequence[str]] = lambda write: ()
    """The remote items that it is about."""

    def allowed(self, model_admin: WriteAdmin, request: HttpRequest) -> bool:
        """Whether the user holds the permission."""
        held: bool = getattr(model_admin, f"has_{self.permission}_permission")(request)
        return held


def respond(model_admin: WriteAdmin, request: HttpRequest, write: WriteIntent, verb: Verb) -> HttpResponse:
    """GET asks, POST acts. A write that does not allow it (any more) sends back to its page with a message."""
    back = HttpResponseRedirect(model_admin.address("change", write.pk))
    refusal = verb.refusal(write)
    if refusal:
        messages.warning(request, gettext("Nothing was done: %(why)s") % {"why": refusal})
        return back
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        _carry_out(model_admin, request, write, verb, form.cleaned_data["reason"])
        return back
    return model_admin.page(
        request,
        "writeintent/confirm.html",
        title=verb.title,
        original=write,
        verb=verb,
        promise=verb.promise(write),
        ids=verb.ids(write),
        form=form,
        **model_admin.summary(request, write),
    )


def _carry_out(model_admin: WriteAdmin, request: HttpRequest, write: WriteIntent, verb: Verb, reason: str) -> None:
    try:
        # So that no act is without its entry in the log, nor, where they share a database, an entry without its act.
        with transaction.atomic(using=router.db_for_write(WriteIntent)):
            verb.act(write, request.user, reason)
            model_admin.log_change(request, write, f"{verb.title}: {reason}")
    except (IllegalMove, WriteNotFound, InvalidInput, SessionDeleted) as error:
        messages.warning(request, gettext("Nothing was done: %(why)s") % {"why": error})
    else:
        messages.success(request, str(verb.done))


# -- the verbs ---------------------------------------------------------------------------------------------------


def not_ambiguous(write: WriteIntent) -> Text:
    """Why `write` cannot be reconciled; "" if it can."""
    if write.state == WriteState.AMBIGUOUS:
        return ""
    return gettext("it is %(state)s, and only an ambiguous write is checked again.") % {
        "state": write.get_state_display()
    }


def _not_held(write: WriteIntent) -> Text:
    if write.state == WriteState.REFUSED:
        return _stale(write)
    if write.settled or write.state == WriteState.AMBIGUOUS:
        return gettext("it is %(state)s, and waits for nothing.") % {"state": write.get_state_display()}
    return "" if write.hold_code else _("it is not held (any more).")


def _stale(write: WriteIntent) -> Text:
    """Why a refused write cannot be tried again; "" if it can."""
    if write.session.deleted_at is not None:
        return _("its session was deleted.")
    if write.generation not in (None, write.session.generation):
        return _("its session was cleared since.")
    return _("its content was purged.") if write.payload_purged_at else ""


def _not_cancellable(write: WriteIntent) -> Text:
    if write.settled:
        return gettext("it is %(state)s already.") % {"state": write.get_state_display()}
    if write.state == WriteState.AMBIGUOUS:
        return _("it is ambiguous; resolve it, which can cancel it as well.")
    return _("it is being cancelled already.") if write.cancel_cause else ""


def _promise_retry(write: WriteIntent) -> Text:
    if write.state == WriteState.REFUSED:
        return gettext(
            "What was refused (%(code)s) is sent again, behind everything that was recorded in this session since. If "
            "the cause has not been mended, it is refused again; nothing can be sent twice by this."
        ) % {"code": write.error_code}
    due = exact(write.next_attempt_at) if write.next_attempt_at else gettext("later")
    return gettext(
        "It is tried again at once instead of at %(due)s. It was held because: %(hold)s. If that has not been mended, "
        "it is held again; nothing can be sent twice by this."
    ) % {"due": due, "hold": write.get_hold_code_display()}


def _promise_cancel(write: WriteIntent) -> Text:
    if write.kind != "append":
        return _(
            "If its deletion was already begun, it is too late and it ends as saved; otherwise nothing is deleted."
        )
    return gettext(
        "%(saved)d of its %(total)d items are saved and stay in the conversation; what was not sent is never sent. A "
        "request in flight is settled first, so the number of saved items may grow by one chunk."
    ) % {"saved": write.items_saved, "total": write.items_total}


def _no_halves(write: WriteIntent) -> Text:
    if not write.half_pairs:
        return _("it left no half of a pair behind.")
    return _stale(write)


def _promise_halves(write: WriteIntent) -> Text:
    number = len(write.half_pairs)
    text = ngettext(
        "Record a removal that deletes %(number)d remote item, of which the other half was not saved.",
        "Record a removal that deletes %(number)d remote items, of which the other halves were not saved.",
        number,
    )
    return text % {"number": number}


def _promise_reconcile(write: WriteIntent) -> Text:
    return _(
        "A worker compares it with the remote history once more. Found exactly once, it counts as saved; proven "
        "absent, it is sent again; otherwise it comes back as ambiguous. Nothing is deleted."
    )


VERBS = (
    Verb(
        name="reconcile",
        permission="reconcile",
        title=_("Check again"),
        done=_("A worker will compare the write with the remote history."),
        refusal=not_ambiguous,
        promise=_promise_reconcile,
        act=lambda write, user, reason: operations.reconcile_write(write.pk, actor=user, reason=reason),
    ),
    Verb(
        name="retry",
        permission="reconcile",
        title=_("Retry now"),
        done=_("The write is tried again now."),
        refusal=_not_held,
        promise=_promise_retry,
        act=lambda write, user, reason: operations.retry_write(write.pk, actor=user, reason=reason),
    ),
    Verb(
        name="cancel",
        permission="cancel",
        title=_("Cancel write"),
        done=_("What of the write was not sent will not be sent."),
        refusal=_not_cancellable,
        promise=_promise_cancel,
        act=lambda write, user, reason: operations.cancel_write(write.pk, actor=user, reason=reason),
    ),
    Verb(
        name="halves",
        permission="resolve",
        title=_("Remove half pairs"),
        done=_("A removal of the half pairs was recorded; a worker carries it out in its turn."),
        refusal=_no_halves,
        promise=_promise_halves,
        act=lambda write, user, reason: operations.remove_half_pairs(write.pk, actor=user, reason=reason),
        ids=lambda write: [half["id"] for half in write.half_pairs],
    ),
)

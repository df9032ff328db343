"""The action of the list: have the selected ambiguous writes checked again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import router, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from convsessions import operations
from convsessions.exceptions import ConvsessionsError
from convsessions.models import WriteIntent

from .display import short
from .verbs import ReasonForm, not_ambiguous

if TYPE_CHECKING:
    from .writes import WriteAdmin

MOST_SELECTED = 200
"""Writes that one batch takes."""
MOST_MESSAGES = 20


@admin.action(permissions=["reconcile"], description=_("Check selected writes again"))
def reconcile_selected(model_admin: WriteAdmin, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
    """First a page that says what will be done and what not; confirmed, one request to reconcile for each write.

    No remote call is made here: each write is journaled, and a worker reads.
    """
    # By session: two batches that lock the same sessions within one request each must lock them in one order.
    writes = list(queryset.order_by("session_id", "sequence")[: MOST_SELECTED + 1])
    form = ReasonForm(request.POST if "confirmed" in request.POST else None)
    if len(writes) <= MOST_SELECTED and form.is_valid():
        _reconcile(model_admin, request, writes, form.cleaned_data["reason"])
        return HttpResponseRedirect(f"{model_admin.address('changelist')}?{request.POST.get('back', '')}")
    return model_admin.page(
        request,
        "writeintent/reconcile_selected.html",
        title=gettext("Check selected writes again"),
        original=None,
        form=form,
        too_many=len(writes) > MOST_SELECTED,
        most=MOST_SELECTED,
        selected=[write for write in writes if not not_ambiguous(write)],
        skipped=[(write, not_ambiguous(write)) for write in writes if not_ambiguous(write)],
        checkbox=ACTION_CHECKBOX_NAME,
        back=request.POST.get("back", request.META.get("QUERY_STRING", "")),
    )


def _reconcile(model_admin: WriteAdmin, request: HttpRequest, writes: list[Any], reason: str) -> None:
    """Reconcile each, whatever became of the others, and say what became of each."""
    refused = [(write, _reconcile_one(model_admin, request, write, reason)) for write in writes]
    skipped = [(write, why) for write, why in refused if why]
    if number := len(writes) - len(skipped):
        text = ngettext(
            "%(number)d write will be checked by a worker.", "%(number)d writes will be checked by a worker.", number
        )
        messages.success(request, text % {"number": number})
    for write, why in skipped[:MOST_MESSAGES]:
        messages.warning(request, gettext("Skipped %(write)s: %(why)s") % {"write": short(write.pk), "why": why})
    if len(skipped) > MOST_MESSAGES:
        messages.warning(request, gettext("Skipped %(number)d more.") % {"number": len(skipped) - MOST_MESSAGES})


def _reconcile_one(model_admin: WriteAdmin, request: HttpRequest, write: WriteIntent, reason: str) -> str:
    """Why it was skipped; "" if it was not. The state that counts is the one under the lock."""
    try:
        with transaction.atomic(using=router.db_for_write(WriteIntent)):
            operations.reconcile_write(write.pk, actor=request.user, reason=reason)
            model_admin.log_change(request, write, gettext("Check again: %(reason)s") % {"reason": reason})
    except ConvsessionsError as error:
        return str(not_ambiguous(write) or error)
    return ""

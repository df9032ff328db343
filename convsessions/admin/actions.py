"""The action of the list: have the selected ambiguous writes checked again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import router, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from convsessions import operations
from convsessions.exceptions import ConvsessionsError
from convsessions.models import WriteIntent

from . import batches
from .verbs import ReasonForm, not_ambiguous

if TYPE_CHECKING:
    from .writes import WriteAdmin

MOST_SELECTED = 200
"""Writes that one batch takes."""


@admin.action(permissions=["reconcile"], description=_("Check selected writes again"))
def reconcile_selected(model_admin: WriteAdmin, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
    """First a page that says what will be done and what not; confirmed, one request to reconcile for each write.

    No remote call is made here: each write is journaled, and a worker reads.
    """
    # By session: two batches that lock the same sessions within one request each must lock them in one order.
    writes = list(queryset.order_by("session_id", "sequence")[: MOST_SELECTED + 1])
    form = ReasonForm(request.POST if "confirmed" in request.POST else None)
    if len(writes) <= MOST_SELECTED and form.is_valid():
        token = _reconcile(model_admin, request, writes, form.cleaned_data["reason"])
        return HttpResponseRedirect(model_admin.address("batch", token))
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


def _reconcile(model_admin: WriteAdmin, request: HttpRequest, writes: list[Any], reason: str) -> str:
    """Reconcile each, whatever became of the others; returns the token of the batch."""
    after = batches.newest_look()
    refused = [(write.pk, _reconcile_one(model_admin, request, write, reason)) for write in writes]
    return batches.remember(
        request, [pk for pk, why in refused if not why], [(pk, why) for pk, why in refused if why], after=after
    )


def _reconcile_one(model_admin: WriteAdmin, request: HttpRequest, write: WriteIntent, reason: str) -> str:
    """Why it was skipped; "" if it was not. The state that counts is the one under the lock."""
    try:
        with transaction.atomic(using=router.db_for_write(WriteIntent)):
            operations.reconcile_write(write.pk, actor=request.user, reason=reason)
            model_admin.log_change(request, write, gettext("Check again: %(reason)s") % {"reason": reason})
    except ConvsessionsError as error:
        return str(not_ambiguous(write) or error)
    return ""

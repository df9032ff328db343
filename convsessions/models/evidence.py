from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from convsessions.states import Operation, OutcomeKind, Resolution, Verdict

from .fields import ExactJSONField, choice_length
from .users import UserField, set_null
from .write import WriteChunk, WriteIntent


class RequestAttempt(models.Model):
    """One request that changes the remote, journaled before it is sent; without an outcome: in flight, or lost."""

    write = models.ForeignKey(WriteIntent, verbose_name=_("write"), on_delete=models.PROTECT, related_name="requests")
    chunk = models.ForeignKey(
        WriteChunk, verbose_name=_("chunk"), null=True, blank=True, on_delete=models.PROTECT, related_name="requests"
    )
    operation = models.CharField(_("operation"), max_length=choice_length(Operation), choices=Operation)
    target_id = models.CharField(_("target"), max_length=128, blank=True)
    sent_at = models.DateTimeField(_("sent"))
    deadline_at = models.DateTimeField(_("deadline"))
    outcome = models.CharField(
        _("outcome"), max_length=choice_length(OutcomeKind), choices=OutcomeKind, null=True, blank=True
    )
    code = models.CharField(_("code"), max_length=64, blank=True)
    param = models.CharField(_("parameter"), max_length=128, blank=True)
    status = models.PositiveSmallIntegerField(_("HTTP status"), null=True, blank=True)
    request_id = models.CharField(_("request id"), max_length=128, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        verbose_name = _("request")
        verbose_name_plural = _("requests")
        ordering = ("pk",)
        indexes = (models.Index(fields=["request_id"], name="convsessions_request_id"),)

    def __str__(self) -> str:
        return f"{self.operation} {self.pk}"


class Reconciliation(models.Model):
    """What was read to decide an unknown outcome, what was concluded, and by whom. Rows are only ever added."""

    write = models.ForeignKey(
        WriteIntent, verbose_name=_("write"), on_delete=models.PROTECT, related_name="reconciliations"
    )
    chunk = models.ForeignKey(
        WriteChunk, verbose_name=_("chunk"), null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    verdict = models.CharField(_("verdict"), max_length=choice_length(Verdict), choices=Verdict, blank=True)
    resolution = models.CharField(_("resolution"), max_length=choice_length(Resolution), choices=Resolution, blank=True)
    evidence = ExactJSONField(_("evidence"), default=dict, help_text=_("ids only, no content"))
    actor = UserField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("operator"),
        null=True,
        blank=True,
        on_delete=set_null,
        db_constraint=False,
        related_name="+",
        help_text=_("empty: decided by the evidence alone"),
    )
    reason = models.TextField(_("reason"), blank=True)
    created_at = models.DateTimeField(_("time"), auto_now_add=True)

    class Meta:
        verbose_name = _("reconciliation")
        verbose_name_plural = _("reconciliations")
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"reconciliation {self.pk}"

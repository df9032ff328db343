from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Heartbeat(models.Model):
    """When something that should happen again and again was last done."""

    SWEEP = "sweep"
    DELIVERY = "delivery"
    """A worker delivered a session; noted now and then only."""

    name = models.CharField(_("name"), max_length=32, primary_key=True)
    beat_at = models.DateTimeField(_("last time"))

    class Meta:
        verbose_name = _("heartbeat")
        verbose_name_plural = _("heartbeats")

    def __str__(self) -> str:
        return self.name

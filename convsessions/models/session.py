from __future__ import annotations

import datetime as dt
import uuid
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from convsessions.items import codec

from .fields import ExactJSONField
from .users import UserField, set_null


class SessionQuerySet(models.QuerySet["ConversationSession"]):
    def due(self, now: dt.datetime) -> Self:
        """Sessions with work that nobody is doing: `wake_at` lies past the live lease, if there is one."""
        return self.filter(wake_at__lte=now).order_by("wake_at")


class ConversationSession(models.Model):
    """A session stands, at any time, for at most one remote conversation. Only the journal changes it."""

    id = models.UUIDField(_("id"), primary_key=True, default=uuid.uuid4, editable=False)
    owner = UserField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=set_null,
        db_constraint=False,
        related_name="+",
    )
    key = models.CharField(_("key"), max_length=255, null=True, blank=True, help_text=_("chosen by the application"))
    # Unique per owner, exactly: collations that fold case or drop trailing blanks would make two keys one, and a NULL
    # owner would make no key unique. It outlives the owner's account.
    key_digest = models.CharField(max_length=64, null=True, unique=True, editable=False)
    # Of the key alone, to find it exactly under any collation and whoever owns it.
    key_hash = models.CharField(max_length=64, null=True, editable=False)
    # Of the owner and the idempotency key with which the session was created, and of what was asked for then.
    creation_digest = models.CharField(max_length=64, null=True, unique=True, editable=False)
    body_digest = models.CharField(max_length=64, blank=True, editable=False)

    conversation_id = models.CharField(_("conversation"), max_length=128, null=True, blank=True, unique=True)
    generation = models.PositiveIntegerField(_("generation"), default=0, help_text=_("how often it was cleared"))
    metadata = ExactJSONField(_("metadata"), default=dict, blank=True)
    tail_anchor = models.CharField(
        max_length=128,
        null=True,
        editable=False,
        help_text=_("id of the last remote item known; empty: known to have none; NULL: not known"),
    )

    lease_token = models.UUIDField(null=True, editable=False)
    lease_expires_at = models.DateTimeField(null=True, editable=False)
    wake_at = models.DateTimeField(
        null=True, editable=False, help_text=_("when the sweep should look at it; NULL: there is nothing to do")
    )
    last_sequence = models.PositiveBigIntegerField(default=0, editable=False)
    version = models.PositiveBigIntegerField(
        default=0, editable=False, help_text=_("counts every change of the session, and of its writes")
    )

    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("last activity"), auto_now=True)
    deleted_at = models.DateTimeField(_("deleted"), null=True, blank=True, editable=False)

    objects = SessionQuerySet.as_manager()

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        indexes = (
            models.Index(fields=["wake_at"], name="convsessions_wake"),
            models.Index(fields=["owner", "-created_at", "-id"], name="convsessions_owner_created"),
            models.Index(fields=["-updated_at"], name="convsessions_activity"),
            models.Index(fields=["-created_at", "-id"], name="convsessions_created"),
            models.Index(fields=["key_hash"], name="convsessions_key"),
        )
        constraints = (
            # A lease without an expiry would never end.
            models.CheckConstraint(
                name="convsessions_lease_whole",
                condition=Q(lease_token__isnull=True, lease_expires_at__isnull=True)
                | Q(lease_token__isnull=False, lease_expires_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return str(self.pk)

    @staticmethod
    def hash_of_key(key: str) -> str:
        """What `key_hash` holds for this key."""
        return codec.digest(key)

    @staticmethod
    def digest_of_key(owner_pk: object, key: str) -> str:
        """What `key_digest` holds for this key of this owner (None: nobody)."""
        return codec.digest(codec.encode(["" if owner_pk is None else str(owner_pk), key]))

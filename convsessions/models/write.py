from __future__ import annotations

import uuid
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Case, Q, Value, When
from django.utils.translation import gettext_lazy as _

from convsessions.exceptions import IllegalMove
from convsessions.items import codec
from convsessions.states import (
    ACTIVE_STATES,
    HUMAN_HOLDS,
    LEGAL_MOVES,
    OPEN_STATES,
    CancelCause,
    HoldCode,
    RefusalPolicy,
    Resolution,
    WriteKind,
    WriteState,
)

from .fields import ContentField, ContentJSONField, ExactJSONField, choice_length
from .session import ConversationSession
from .users import UserField, set_null


class WriteQuerySet(models.QuerySet["WriteIntent"]):
    def open(self) -> Self:
        """Writes that still stand before later ones."""
        return self.filter(is_open=True)

    def queue(self, session_id: uuid.UUID) -> Self:
        """The open writes of a session, the head first."""
        return self.open().filter(session_id=session_id).order_by("sequence")

    def needing_attention(self) -> Self:
        """Ambiguous writes and writes held for a reason that only a person can mend."""
        return self.filter(needs_attention=True)


class WriteIntent(models.Model):
    """One append, pop, clear or change of metadata, recorded before the first byte is sent.

    Only the journal changes it.
    """

    id = models.UUIDField(_("id"), primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(
        ConversationSession, verbose_name=_("session"), on_delete=models.PROTECT, related_name="writes"
    )
    sequence = models.PositiveBigIntegerField(_("sequence"))
    kind = models.CharField(_("kind"), max_length=choice_length(WriteKind), choices=WriteKind)
    state = models.CharField(
        _("state"), max_length=choice_length(WriteState), choices=WriteState, default=WriteState.PENDING
    )
    generation = models.PositiveIntegerField(
        _("generation"), null=True, help_text=_("the session's generation when it was begun")
    )

    items_total = models.PositiveIntegerField(_("items"), default=0)
    items_saved = models.PositiveIntegerField(_("items saved"), default=0)
    items_omitted = models.PositiveIntegerField(
        _("items omitted"), default=0, help_text=_("given, and counted as handled: the API takes no such items")
    )

    author = UserField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("author"),
        null=True,
        blank=True,
        on_delete=set_null,
        db_constraint=False,
        related_name="+",
    )
    idempotency_key = models.CharField(_("idempotency key"), max_length=255, null=True, blank=True)
    idempotency_digest = models.CharField(max_length=64, null=True, editable=False)
    body_digest = models.CharField(max_length=64, editable=False)

    hold_code = models.CharField(
        _("held because"), max_length=choice_length(HoldCode), choices=HoldCode, default=HoldCode.NONE, blank=True
    )
    next_attempt_at = models.DateTimeField(_("next attempt"), null=True, blank=True)
    failures = models.PositiveIntegerField(_("failures in a row"), default=0)
    error_code = models.CharField(_("error code"), max_length=64, blank=True)
    error_param = models.CharField(_("error parameter"), max_length=128, blank=True)
    on_refusal = models.CharField(
        _("when an item is refused"),
        max_length=choice_length(RefusalPolicy),
        choices=RefusalPolicy,
        default=RefusalPolicy.STOP,
    )
    cancel_cause = models.CharField(
        _("cancelled by"),
        max_length=choice_length(CancelCause),
        choices=CancelCause,
        default=CancelCause.NONE,
        blank=True,
    )

    target_id = models.CharField(
        _("target"), max_length=128, blank=True, help_text=_("the remote id that a pop or a clear deletes")
    )
    popped = ContentJSONField(_("popped item"), null=True, blank=True)
    metadata = ExactJSONField(_("metadata"), null=True, blank=True, help_text=_("what a change of metadata sets"))
    resolution = models.CharField(_("resolution"), max_length=choice_length(Resolution), choices=Resolution, blank=True)
    doomed_ids = ExactJSONField(default=list, blank=True, help_text=_("remote items that it still has to delete"))
    half_pairs = ExactJSONField(
        _("half pairs"), default=list, blank=True, help_text=_("items that it saved without what belongs to them")
    )
    erase = models.BooleanField(
        _("erase"), default=False, help_text=_("a clear: whether it deletes every item before the conversation")
    )
    payload_purged_at = models.DateTimeField(_("content purged"), null=True, blank=True, editable=False)

    created_at = models.DateTimeField(_("recorded"), auto_now_add=True)
    started_at = models.DateTimeField(_("begun"), null=True, blank=True)
    settled_at = models.DateTimeField(_("settled"), null=True, blank=True)

    # Derived by the database from the state, so that they cannot disagree with it. They make partial indexes and
    # partial uniqueness work on MariaDB too, which has neither.
    is_open = models.GeneratedField(
        expression=Case(When(state__in=[s.value for s in OPEN_STATES], then=Value(True)), default=Value(None)),
        output_field=models.BooleanField(null=True),
        db_persist=True,
    )
    is_active = models.GeneratedField(
        expression=Case(When(state__in=[s.value for s in ACTIVE_STATES], then=Value(True)), default=Value(None)),
        output_field=models.BooleanField(null=True),
        db_persist=True,
    )
    needs_attention = models.GeneratedField(
        expression=Case(
            When(state=WriteState.AMBIGUOUS.value, then=Value(True)),
            When(
                state__in=[s.value for s in OPEN_STATES],
                hold_code__in=[code.value for code in HUMAN_HOLDS],
                then=Value(True),
            ),
            default=Value(None),
        ),
        output_field=models.BooleanField(null=True),
        db_persist=True,
    )

    objects = WriteQuerySet.as_manager()

    class Meta:
        verbose_name = _("write")
        verbose_name_plural = _("writes")
        ordering = ("-created_at",)
        permissions = (
            ("reconcile_writeintent", "Can have writes checked or tried again"),
            ("resolve_writeintent", "Can resolve ambiguous writes"),
            ("cancel_writeintent", "Can cancel writes"),
            ("view_payload", "Can see the content of writes"),
        )
        indexes = (
            models.Index(fields=["session", "is_open", "sequence"], name="convsessions_queue"),
            models.Index(fields=["needs_attention", "created_at"], name="convsessions_attention"),
            models.Index(fields=["is_open", "created_at"], name="convsessions_open_age"),
            models.Index(fields=["-created_at"], name="convsessions_write_created"),
            # What retention has to look at, and what settled lately.
            models.Index(fields=["payload_purged_at", "settled_at"], name="convsessions_retention"),
            models.Index(fields=["settled_at"], name="convsessions_settled"),
            # Rare states among many settled writes, newest first: what operators filter by.
            models.Index(fields=["state", "-created_at"], name="convsessions_state_created"),
        )
        constraints = (
            models.UniqueConstraint(fields=["session", "sequence"], name="convsessions_sequence_once"),
            # One writer at a time: two writes of a session must never both have something in flight.
            models.UniqueConstraint(fields=["session", "is_active"], name="convsessions_one_active"),
            models.UniqueConstraint(fields=["session", "idempotency_digest"], name="convsessions_idempotent"),
            models.CheckConstraint(
                name="convsessions_write_state", condition=Q(state__in=[s.value for s in WriteState])
            ),
            # What was begun belongs to one generation; it can never land in the conversation of another.
            models.CheckConstraint(
                name="convsessions_begun_generation",
                condition=~Q(state__in=[s.value for s in ACTIVE_STATES]) | Q(generation__isnull=False),
            ),
            models.CheckConstraint(
                name="convsessions_saved_counts",
                condition=Q(items_saved__lte=models.F("items_total")),
            ),
            # A settled time without a settled state, or the reverse, would hide a write from people.
            models.CheckConstraint(
                name="convsessions_settled_time",
                condition=Q(state__in=[s.value for s in OPEN_STATES], settled_at__isnull=True)
                | (~Q(state__in=[s.value for s in OPEN_STATES]) & Q(settled_at__isnull=False)),
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    def move(self, to: WriteState) -> None:
        """Change `state`, if the table allows it; the caller saves. Raises IllegalMove."""
        self.state = legal_move(self.state, to, of=f"write {self.pk}")

    @property
    def settled(self) -> bool:
        return self.state not in OPEN_STATES

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """The items that the API refused and the append went on without: `item` (position), `code` and `param`."""
        if self.on_refusal != RefusalPolicy.SKIP:
            return []
        refused = self.chunks.db_manager(self._state.db).filter(state=WriteState.REFUSED)
        found = refused.values_list("first_item", "error_code", "error_param")
        return [{"item": item, "code": code, "param": param} for item, code, param in found]


class WriteChunk(models.Model):
    """1 to 20 consecutive items of an append, sent in one request. Only the journal changes it."""

    write = models.ForeignKey(WriteIntent, verbose_name=_("write"), on_delete=models.PROTECT, related_name="chunks")
    first_item = models.PositiveIntegerField(_("first item"), help_text=_("position in the write, from 0"))
    item_count = models.PositiveSmallIntegerField(_("items"))
    payload = ContentField(_("payload"), help_text=_("a JSON array, as it is sent; empty: purged"))
    original = ContentField(
        _("as given"),
        null=True,
        editable=False,
        help_text=_("a JSON array of the items as they were given, null where they are sent so; NULL: all are"),
    )
    state = models.CharField(
        _("state"), max_length=choice_length(WriteState), choices=WriteState, default=WriteState.PENDING
    )
    anchor = models.CharField(
        _("anchor"),
        max_length=128,
        null=True,
        blank=True,
        help_text=_("remote id of the last item known to precede it; empty: known to be none; NULL: never sent"),
    )
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    resent = models.BooleanField(
        _("sent again"), default=False, help_text=_("sent again after a request of unknown outcome was judged absent")
    )
    deadline_at = models.DateTimeField(_("deadline"), null=True, blank=True)
    remote_ids = ExactJSONField(_("remote ids"), default=list, blank=True)
    error_code = models.CharField(_("error code"), max_length=64, blank=True, help_text=_("why it was refused"))
    error_param = models.CharField(_("error parameter"), max_length=128, blank=True)
    settled_at = models.DateTimeField(_("settled"), null=True, blank=True)

    class Meta:
        verbose_name = _("chunk")
        verbose_name_plural = _("chunks")
        ordering = ("first_item",)
        constraints = (
            models.UniqueConstraint(fields=["write", "first_item"], name="convsessions_chunk_once"),
            models.CheckConstraint(
                name="convsessions_chunk_state", condition=Q(state__in=[s.value for s in WriteState])
            ),
            models.CheckConstraint(name="convsessions_chunk_size", condition=Q(item_count__gte=1, item_count__lte=20)),
            # Without its anchor and deadline a request of unknown outcome could not be reconciled.
            models.CheckConstraint(
                name="convsessions_chunk_journaled",
                condition=~Q(state=WriteState.SENDING.value) | Q(anchor__isnull=False, deadline_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"chunk at item {self.first_item} of write {self.write_id}"

    def move(self, to: WriteState) -> None:
        """Change `state`, if the table allows it; the caller saves. Raises IllegalMove."""
        self.state = legal_move(self.state, to, of=str(self))

    @property
    def items(self) -> list[dict[str, object]]:
        """The items as they are sent."""
        items: list[dict[str, object]] = codec.decode(self.payload)
        return items


def legal_move(current: str, to: WriteState, *, of: str) -> WriteState:
    """`to`, if a write or chunk in state `current` may move there. Raises IllegalMove, which names `of`."""
    if to not in LEGAL_MOVES[WriteState(current)]:
        raise IllegalMove(f"{of} is {current} and cannot become {to}")
    return to

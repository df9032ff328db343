"""The sandbox's rows. Item content is ASCII JSON text, so that any database keeps it byte for byte."""

from __future__ import annotations

from typing import Any

from django.db import models

from convsessions.items import codec

ID_LENGTH = 64
"""Reported: the API refuses an id of more than 64 characters."""


class SandboxConversation(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH)
    created_at = models.BigIntegerField(help_text="seconds since 1970")
    metadata = models.TextField(default="{}")
    next_position = models.PositiveBigIntegerField(default=0, help_text="raised first by each append: it is the lock")
    deleted = models.BooleanField(default=False, help_text="gone for the API; its items stay (documented)")

    def __str__(self) -> str:
        return self.id

    def as_json(self) -> dict[str, Any]:
        """The conversation as the API shows it (recorded): items are not part of it."""
        return {
            "id": self.id,
            "object": "conversation",
            "created_at": self.created_at,
            "metadata": codec.decode(self.metadata),
        }


class SandboxItem(models.Model):
    """The content behind one id. Several conversations can show it (recorded)."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH)
    payload = models.TextField()

    def __str__(self) -> str:
        return self.id

    def as_json(self) -> dict[str, Any]:
        """The whole item, with its id and everything that reads hide unless included."""
        item: dict[str, Any] = codec.decode(self.payload)
        return item


class SandboxEntry(models.Model):
    """One place in one conversation."""

    conversation = models.ForeignKey(SandboxConversation, on_delete=models.CASCADE, related_name="entries")
    item = models.ForeignKey(SandboxItem, on_delete=models.CASCADE, related_name="entries")
    position = models.PositiveBigIntegerField()

    class Meta:
        ordering = ("position",)
        constraints = (
            # Two appends that were given the same place would make the order of the history a matter of luck.
            models.UniqueConstraint(fields=["conversation", "position"], name="convsessions_sandbox_place_once"),
        )

    def __str__(self) -> str:
        return f"{self.conversation_id}[{self.position}]"


class SandboxFault(models.Model):
    """An order to misbehave. A row, so that every process and thread of the sandbox takes from the same supply."""

    kind = models.CharField(max_length=32)
    operation = models.CharField(max_length=32, blank=True, help_text="empty: any")
    conversation = models.CharField(max_length=ID_LENGTH, blank=True, help_text="empty: any")
    skip = models.PositiveIntegerField(default=0, help_text="matching requests to let pass first")
    times = models.PositiveIntegerField(null=True, default=1, help_text="uses left; NULL: until removed")
    options = models.TextField(default="{}")

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    def as_json(self) -> dict[str, Any]:
        """What it was set with; `skip` and `times` say what is left."""
        named = {name: getattr(self, name) for name in ("id", "kind", "operation", "conversation", "skip", "times")}
        return {**codec.decode(self.options), **named}


class SandboxRequest(models.Model):
    """The log: one row a request, committed before anything else happens to it."""

    request_id = models.CharField(max_length=40, help_text="the x-request-id of its answer")
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=500)
    operation = models.CharField(max_length=32)
    conversation = models.CharField(max_length=ID_LENGTH, blank=True, db_index=True)
    items = models.PositiveIntegerField(default=0)
    started_at = models.FloatField(help_text="wall clock, seconds since 1970")
    finished_at = models.FloatField(null=True, help_text="just before the reply leaves; NULL: still under way")
    status = models.PositiveSmallIntegerField(default=0, help_text="0: no reply")
    fault = models.CharField(max_length=32, blank=True)
    applied = models.BooleanField(default=False, help_text="it changed a conversation")

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.method} {self.request_id}"

    def as_json(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in self._meta.concrete_fields}


class SandboxSettings(models.Model):
    """At most one row, with primary key 1."""

    latency = models.FloatField(default=0.0, help_text="seconds before each request is looked at")

    def __str__(self) -> str:
        return f"latency {self.latency}"

"""What the API shows of its rows. Input is not read here: `operations` checks it, once for all edges."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from convsessions.models import ConversationSession, Reconciliation, WriteChunk, WriteIntent

from .rows import SessionState


class SessionSerializer(serializers.ModelSerializer[ConversationSession]):
    """A session of `rows.sessions`."""

    owner = serializers.CharField(source="owner_id", allow_null=True, read_only=True)
    metadata = serializers.JSONField(read_only=True)
    state = serializers.SerializerMethodField()
    open_writes = serializers.IntegerField(read_only=True)
    needs_attention = serializers.SerializerMethodField()

    class Meta:
        model = ConversationSession
        fields: tuple[str, ...] = (
            "id", "owner", "key", "conversation_id", "generation", "metadata", "state", "open_writes",
            "needs_attention", "created_at", "updated_at", "deleted_at",
        )  # fmt: skip
        read_only_fields = fields

    def get_state(self, session: Any) -> str:
        if session.ambiguous_writes:
            return SessionState.BLOCKED.value
        return SessionState.BUSY.value if session.open_writes else SessionState.IDLE.value

    def get_needs_attention(self, session: Any) -> bool:
        return bool(session.urgent_writes)


class ChunkSerializer(serializers.ModelSerializer[WriteChunk]):
    remote_ids = serializers.JSONField(read_only=True)

    class Meta:
        model = WriteChunk
        fields = ("first_item", "item_count", "state", "attempts", "remote_ids", "error_code", "error_param")
        read_only_fields = fields


class ReconciliationSerializer(serializers.ModelSerializer[Reconciliation]):
    """With the reason where the context says `reasons`: operators write those for each other."""

    class Meta:
        model = Reconciliation
        fields = ("verdict", "resolution", "created_at", "reason")
        read_only_fields = fields

    def to_representation(self, instance: Reconciliation) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        if not self.context.get("reasons"):
            del shown["reason"]
        return shown


class WriteSummarySerializer(serializers.ModelSerializer[WriteIntent]):
    """A write in a list: nothing that takes a query a row."""

    session = serializers.UUIDField(source="session_id", read_only=True)
    author = serializers.CharField(source="author_id", allow_null=True, read_only=True)
    needs_attention = serializers.SerializerMethodField()

    class Meta:
        model = WriteIntent
        fields: tuple[str, ...] = (
            "id", "session", "sequence", "kind", "state", "author", "idempotency_key", "items_total", "items_saved",
            "items_omitted", "on_refusal", "erase", "needs_attention", "hold_code", "next_attempt_at", "failures",
            "error_code", "error_param", "cancel_cause", "resolution", "created_at", "started_at", "settled_at",
            "payload_purged_at",
        )  # fmt: skip
        read_only_fields = fields

    def get_needs_attention(self, write: WriteIntent) -> bool:
        return bool(write.needs_attention)


class WriteSerializer(WriteSummarySerializer):
    """A write with its progress; the item that it popped only where the context says `content`."""

    metadata = serializers.JSONField(read_only=True)
    popped = serializers.SerializerMethodField()
    half_pairs = serializers.JSONField(read_only=True)
    chunks = ChunkSerializer(many=True, read_only=True)
    reconciliations = ReconciliationSerializer(many=True, read_only=True)

    class Meta(WriteSummarySerializer.Meta):
        fields = (
            *WriteSummarySerializer.Meta.fields,
            "target_id", "metadata", "popped", "half_pairs", "chunks", "reconciliations",
        )  # fmt: skip
        read_only_fields = fields

    def get_popped(self, write: WriteIntent) -> Any:
        return write.popped if self.context.get("content") else None

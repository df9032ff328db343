"""What the API shows of its rows. Input is not read here: `operations` checks it, once for all edges."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from convsessions.models import ConversationSession, Reconciliation, WriteChunk, WriteIntent


class SessionSerializer(serializers.ModelSerializer[ConversationSession]):
    owner = serializers.CharField(source="owner_id", allow_null=True, read_only=True)
    metadata = serializers.JSONField(read_only=True)
    open_writes = serializers.IntegerField(read_only=True, default=0)

    class Meta:
        model = ConversationSession
        fields = (
            "id", "owner", "key", "conversation_id", "generation", "metadata", "open_writes",
            "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = fields


class ChunkSerializer(serializers.ModelSerializer[WriteChunk]):
    remote_ids = serializers.JSONField(read_only=True)

    class Meta:
        model = WriteChunk
        fields = ("first_item", "item_count", "state", "attempts", "remote_ids")
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

    class Meta:
        model = WriteIntent
        fields: tuple[str, ...] = (
            "id", "session", "sequence", "kind", "state", "items_total", "items_saved", "hold_code", "next_attempt_at",
            "error_code", "error_param", "created_at", "started_at", "settled_at",
        )  # fmt: skip
        read_only_fields = fields


class WriteSerializer(WriteSummarySerializer):
    """A write with its progress; the item that it popped only where the context says `content`."""

    popped = serializers.SerializerMethodField()
    chunks = ChunkSerializer(many=True, read_only=True)
    reconciliations = ReconciliationSerializer(many=True, read_only=True)

    class Meta(WriteSummarySerializer.Meta):
        fields = (*WriteSummarySerializer.Meta.fields, "popped", "chunks", "reconciliations")
        read_only_fields = fields

    def get_popped(self, write: WriteIntent) -> Any:
        return write.popped if self.context.get("content") else None

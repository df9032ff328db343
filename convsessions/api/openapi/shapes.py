"""The bodies of requests and answers, for the document only; the views read and write them by other means."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from convsessions.api.rows import SessionState
from convsessions.api.serializers import (
    ChunkSerializer,
    ReconciliationSerializer,
    SessionSerializer,
    WriteSerializer,
    WriteSummarySerializer,
)
from convsessions.items.kinds import ROLES
from convsessions.operations.condition import Cluster
from convsessions.states import CancelCause, HoldCode, RefusalPolicy, Resolution, Verdict, WriteKind, WriteState
from convsessions.values import MAX_CONVERSATION_ID, MAX_KEY, MAX_PAIRS, MAX_VALUE

ITEM = {
    "anyOf": [
        {
            "type": "object",
            "title": "message",
            "required": ["role", "content"],
            "properties": {
                "type": {"type": "string", "enum": ["message"]},
                "role": {"type": "string", "enum": sorted(ROLES)},
                "content": {"type": "string"},
            },
        },
        {
            "type": "object",
            "title": "any item",
            "description": "As the Responses API defines it, and of any type that it knows.",
            "required": ["type"],
            "properties": {"type": {"type": "string", "minLength": 1}},
            "additionalProperties": True,
        },
    ]
}
STORED_ITEM = {
    "type": "object",
    "description": "An item as the Conversations API stores it.",
    "required": ["id"],
    "properties": {"id": {"type": "string"}, "type": {"type": "string"}},
    "additionalProperties": True,
}
METADATA = {
    "type": "object",
    "description": "Up to 16 pairs of strings; keys of 1 to 64 characters, values of up to 512.",
    "maxProperties": MAX_PAIRS,
    "additionalProperties": {"type": "string", "maxLength": MAX_VALUE},
}
HALF = {
    "type": "object",
    "required": ["item", "id", "type", "missing"],
    "properties": {
        "item": {"type": "integer"},
        "id": {"type": "string"},
        "type": {"type": "string"},
        "missing": {"type": "integer"},
    },
}
IDS = {"type": "array", "items": {"type": "string"}}


def _choices(known: Any, **options: Any) -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=[value for value in known.values if value], **options)


@extend_schema_field(METADATA)
class Metadata(serializers.JSONField):
    pass


@extend_schema_field({**METADATA, "nullable": True})
class MaybeMetadata(serializers.JSONField):
    pass


@extend_schema_field({"type": "array", "items": ITEM})
class InputItems(serializers.JSONField):
    pass


@extend_schema_field({"type": "array", "items": STORED_ITEM})
class StoredItems(serializers.JSONField):
    pass


@extend_schema_field({**STORED_ITEM, "nullable": True})
class MaybeStoredItem(serializers.JSONField):
    pass


# An `allOf` beside `nullable`, which drf-spectacular would make of it, does not admit null (OpenAPI 3.0.3).
@extend_schema_field(
    {"oneOf": [{"$ref": "#/components/schemas/Write"}, {"type": "object", "nullable": True, "enum": [None]}]}
)
class MaybeWrite(serializers.JSONField):
    pass


@extend_schema_field(IDS)
class Ids(serializers.JSONField):
    pass


@extend_schema_field({"type": "array", "items": HALF})
class Halves(serializers.JSONField):
    pass


@extend_schema_field({"type": "object", "additionalProperties": True})
class AnyObject(serializers.JSONField):
    pass


class FieldProblem(serializers.Serializer[Any]):
    field = serializers.CharField()
    code = serializers.CharField()
    detail = serializers.CharField()


class Problem(serializers.Serializer[Any]):
    """Problem details (RFC 9457)."""

    type = serializers.CharField(help_text="always `about:blank`")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="for people; may change")
    code = serializers.CharField(help_text="for programs; does not change")
    field = serializers.CharField(
        required=False, help_text="the path of the field, or the parameter or header, that is wrong"
    )
    errors = FieldProblem(many=True, required=False)  # type: ignore[assignment]


@extend_schema_serializer(component_name="Session")
class Session(SessionSerializer):
    metadata = Metadata(read_only=True)
    state = _choices(SessionState, read_only=True)  # type: ignore[assignment]
    needs_attention = serializers.BooleanField(read_only=True)  # type: ignore[assignment]


@extend_schema_serializer(component_name="Chunk")
class Chunk(ChunkSerializer):
    state = _choices(WriteState, read_only=True)
    remote_ids = Ids(read_only=True)


@extend_schema_serializer(component_name="Reconciliation")
class Reconciliation(ReconciliationSerializer):
    verdict = serializers.ChoiceField(choices=["", *Verdict.values], read_only=True)
    resolution = serializers.ChoiceField(choices=["", *Resolution.values], read_only=True)
    reason = serializers.CharField(required=False, help_text="shown to staff only")


@extend_schema_serializer(component_name="WriteSummary")
class WriteSummary(WriteSummarySerializer):
    kind = _choices(WriteKind, read_only=True)
    state = _choices(WriteState, read_only=True)
    needs_attention = serializers.BooleanField(read_only=True)  # type: ignore[assignment]
    hold_code = serializers.ChoiceField(choices=HoldCode.values, read_only=True)
    cancel_cause = serializers.ChoiceField(choices=CancelCause.values, read_only=True)
    on_refusal = serializers.ChoiceField(choices=RefusalPolicy.values, read_only=True)
    resolution = serializers.ChoiceField(choices=["", *Resolution.values], read_only=True)


@extend_schema_serializer(component_name="Write")
class Write(WriteSummary):
    metadata = MaybeMetadata(read_only=True)
    popped = MaybeStoredItem(read_only=True, help_text="shown to those who may see content")
    half_pairs = Halves(read_only=True, help_text="items that it saved without what belongs to them")
    chunks = Chunk(many=True, read_only=True)
    reconciliations = Reconciliation(many=True, read_only=True)

    class Meta(WriteSerializer.Meta):
        pass


@extend_schema_serializer(component_name="SessionAndWrite")
class SessionAndWrite(Session):
    write = MaybeWrite(read_only=True, help_text="the last write that was recorded with it")

    class Meta(Session.Meta):
        fields = (*Session.Meta.fields, "write")
        read_only_fields = fields


class NewSession(serializers.Serializer[Any]):
    key = serializers.CharField(required=False, allow_null=True, min_length=1, max_length=MAX_KEY)
    metadata = MaybeMetadata(required=False)
    conversation_id = serializers.CharField(
        required=False, allow_null=True, min_length=1, max_length=MAX_CONVERSATION_ID,
        help_text="an existing conversation, which no other session has",
    )  # fmt: skip
    items = InputItems(required=False)


class SessionChange(serializers.Serializer[Any]):
    key = serializers.CharField(required=False, allow_null=True, min_length=1, max_length=MAX_KEY)
    metadata = MaybeMetadata(required=False)


class NewItems(serializers.Serializer[Any]):
    items = InputItems()
    on_refusal = serializers.ChoiceField(
        choices=RefusalPolicy.values, required=False, help_text="what becomes of them when the API refuses one"
    )


class Clearing(serializers.Serializer[Any]):
    erase = serializers.BooleanField(
        required=False, allow_null=True, help_text="whether every item is deleted before the conversation"
    )


class Nothing(serializers.Serializer[Any]):
    """An empty object, or no body at all."""


class Page(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)


class SessionPage(Page):
    results = Session(many=True)


class WritePage(Page):
    results = WriteSummary(many=True)


class ItemList(serializers.Serializer[Any]):
    object = serializers.ChoiceField(choices=["list"])
    data = StoredItems()  # type: ignore[assignment]
    first_id = serializers.CharField(allow_null=True)
    last_id = serializers.CharField(allow_null=True)
    has_more = serializers.BooleanField()
    open_writes = serializers.IntegerField(help_text="writes that the list may be without")
    ambiguous_writes = serializers.IntegerField(help_text="those of them that wait for an operator")


class Drift(serializers.Serializer[Any]):
    intact = serializers.BooleanField()
    checked = serializers.IntegerField()
    purged = serializers.IntegerField(help_text="items of which the journal has no content any more to compare")
    missing, altered, reordered, foreign = Ids(), Ids(), Ids(), Ids()


class Reason(serializers.Serializer[Any]):
    reason = serializers.CharField(min_length=1)


class Evidence(serializers.Serializer[Any]):
    verdict = serializers.ChoiceField(choices=Verdict.values)
    resolutions = serializers.ListField(child=serializers.ChoiceField(choices=Resolution.values))
    findings = AnyObject(help_text="ids of items, no content")
    evidence = serializers.CharField(help_text="the token to give with a decision")


class Decision(Reason):
    resolution = serializers.ChoiceField(choices=Resolution.values)
    evidence = serializers.CharField(min_length=1)


class Unreachable(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["ok", "failing"])
    database = serializers.ChoiceField(choices=["ok", "unreachable"])


class Health(Unreachable):
    queue_depth = serializers.IntegerField(allow_null=True, required=False)
    open_writes = serializers.IntegerField(required=False)
    held_writes = serializers.IntegerField(required=False)
    ambiguous_writes = serializers.IntegerField(required=False)
    oldest_pending_seconds = serializers.FloatField(allow_null=True, required=False)
    cluster = serializers.ChoiceField(choices=list(Cluster), required=False)
    last_sweep_at = serializers.DateTimeField(allow_null=True, required=False)
    last_sweep_seconds = serializers.FloatField(allow_null=True, required=False)
    last_delivery_at = serializers.DateTimeField(allow_null=True, required=False)
    last_delivery_seconds = serializers.FloatField(allow_null=True, required=False)

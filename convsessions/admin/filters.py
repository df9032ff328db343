"""Filters that answer an operator's questions, each from an index where there is one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.db import models
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from convsessions.models import WriteIntent
from convsessions.states import HUMAN_HOLDS, OPEN_STATES, HoldCode, Verdict, WriteState


class ChoiceFilter(admin.SimpleListFilter):
    """One value of a closed vocabulary. Values that no row has are listed too: finding out would read the table."""

    vocabulary: ClassVar[type[models.TextChoices]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [choice for choice in self.vocabulary.choices if choice[0]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(self.condition(value)) if value in self.vocabulary.values else queryset

    def condition(self, value: str) -> Q:
        raise NotImplementedError


class StateFilter(ChoiceFilter):
    title = _("state")
    parameter_name = "state"
    vocabulary = WriteState

    def condition(self, value: str) -> Q:
        # What follows from the state is named here, so that its index serves.
        if value == WriteState.AMBIGUOUS:
            return Q(state=value, needs_attention=True)
        return Q(state=value, is_open=True) if value in OPEN_STATES else Q(state=value)


class HoldFilter(ChoiceFilter):
    title = _("held because")
    parameter_name = "held"
    vocabulary = HoldCode

    def condition(self, value: str) -> Q:
        human = value in {code.value for code in HUMAN_HOLDS}
        return Q(hold_code=value, needs_attention=True) if human else Q(hold_code=value, is_open=True)


class VerdictFilter(ChoiceFilter):
    """The verdict that made a write ambiguous."""

    title = _("verdict")
    parameter_name = "verdict"
    vocabulary = Verdict

    def condition(self, value: str) -> Q:
        return Q(needs_attention=True, state=WriteState.AMBIGUOUS, error_code=value)

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [(value, str(label).partition(":")[0]) for value, label in self.vocabulary.choices]


class AgeFilter(admin.SimpleListFilter):
    """How long ago a write was recorded; and what is open for longer than it should be."""

    title = _("age")
    parameter_name = "age"
    spans: ClassVar = {
        "hour": (dt.timedelta(hours=1), _("the last hour")),
        "day": (dt.timedelta(days=1), _("the last 24 hours")),
        "week": (dt.timedelta(days=7), _("the last 7 days")),
    }
    open_for: ClassVar = {
        "open_10m": (dt.timedelta(minutes=10), _("open for more than 10 minutes")),
        "open_hour": (dt.timedelta(hours=1), _("open for more than an hour")),
        "open_day": (dt.timedelta(days=1), _("open for more than a day")),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [(value, title) for value, (_span, title) in {**self.spans, **self.open_for}.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value, now = self.value(), timezone.now()
        if value in self.spans:
            return queryset.filter(created_at__gte=now - self.spans[value][0])
        if value in self.open_for:
            return queryset.filter(is_open=True, created_at__lt=now - self.open_for[value][0])
        return queryset


class AttentionFilter(admin.SimpleListFilter):
    """Writes that wait for a person, and sessions that have one."""

    title = _("attention")
    parameter_name = "attention"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [("yes", _("needs attention"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() != "yes":
            return queryset
        if queryset.model is WriteIntent:
            return queryset.filter(needs_attention=True)
        return queryset.filter(pk__in=WriteIntent.objects.needing_attention().order_by().values("session_id"))

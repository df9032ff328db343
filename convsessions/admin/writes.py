"""The list of writes, the page of one, and the addresses of what can be done with it."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls.resolvers import URLPattern
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import WriteState

from . import actions, batches, content, display, overview, support, timeline, verbs
from .calendar import calendar_of
from .chunks import chunk_rows
from .filters import AgeFilter, AttentionFilter, HoldFilter, StateFilter, VerdictFilter
from .pages import MOST_COUNTED, JournalAdmin, outside_transactions
from .resolving import ResolvePage
from .searching import search_writes
from .sessions import name_of

LARGE = ("popped", "doomed_ids", "session__metadata")


class WriteList(ChangeList):
    """Looks up the states of the chunks of the writes on the page, all at once."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        writes: list[Any] = list(self.result_list)
        states = display.chunk_states(writes)
        model_admin: Any = self.model_admin
        may_resolve = model_admin.has_resolve_permission(request)
        for write in writes:
            write.chunk_states = states.get(write.pk, [])
            write.resolvable = may_resolve and write.state == WriteState.AMBIGUOUS
        self.result_list = writes
        self.oldest = _day_of_oldest()
        self.calendar = calendar_of(self)


def _day_of_oldest() -> dt.date | None:
    """One row from the index on `created_at`, whatever the filters are: asking with them might read the table."""
    oldest = WriteIntent.objects.order_by("created_at").values_list("created_at", flat=True).first()
    if oldest is None:
        return None
    return timezone.localdate(oldest) if timezone.is_aware(oldest) else oldest.date()


class WriteAdmin(JournalAdmin):
    list_display = ("name", "state_and_why", "progress", "session_link", "age")
    list_filter = (
        AttentionFilter,
        StateFilter,
        HoldFilter,
        VerdictFilter,
        AgeFilter,
        "kind",
    )
    date_hierarchy = "created_at"
    search_fields = ("pk",)
    search_help_text = _(
        "The id of a write, request, session, conversation or remote item, a session's key or a part of it, or its "
        "owner's name."
    )
    actions = (actions.reconcile_selected,)

    # -- the list ------------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("session").defer(*LARGE)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return WriteList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        waiting = WriteIntent.objects.needing_attention().order_by()[: MOST_COUNTED + 1].count()
        return super().changelist_view(
            request, {"attention": waiting, "overview": self.address("overview"), **(extra_context or {})}
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        return (search_writes(queryset, term) if term else queryset), False

    @admin.display(description=_("write"))
    def name(self, write: WriteIntent) -> str:
        return f"{write.get_kind_display()} {display.short(write.pk)}"

    @admin.display(description=_("state"))
    def state_and_why(self, write: Any) -> SafeString:
        repair = self._resolve_link(write) if write.resolvable else ""
        return format_html("{} {} {}", display.state_badge(write), display.why(write), repair)

    @admin.display(description=_("progress"))
    def progress(self, write: Any) -> SafeString | str:
        strip = display.strip(write.chunk_states)
        return format_html("{}<br>{}", strip, display.progress(write)) if strip else ""

    @admin.display(description=_("age"))
    def age(self, write: WriteIntent) -> SafeString | str:
        return display.age(write.created_at)

    @admin.display(description=_("session"))
    def session_link(self, write: WriteIntent) -> SafeString | str:
        address = self.address("change", write.session_id, model=ConversationSession)
        name = name_of(write.session)
        return format_html('<a class="cs-name" href="{}">{}</a>', address, name) if address else name

    def _resolve_link(self, write: WriteIntent) -> SafeString:
        spoken = gettext("Resolve write %(id)s") % {"id": display.short(write.pk)}
        address = self.address("resolve", write.pk)
        return format_html(
            '<a class="button cs-button" href="{}" aria-label="{}">{}</a>', address, spoken, gettext("Resolve")
        )

    # -- the page of one write -----------------------------------------------------------------------------------

    def show(self, request: HttpRequest, row: Any) -> HttpResponse:
        states = display.chunk_states([row]).get(row.pk, [])
        return self.page(
            request,
            "writeintent/detail.html",
            title=gettext("%(kind)s %(id)s") % {"kind": row.get_kind_display(), "id": display.short(row.pk)},
            original=row,
            **self.summary(request, row),
            what_to_do=display.what_to_do(row),
            strip=display.strip(states),
            spoken=display.spoken(states) if states else "",
            chunks=chunk_rows(row),
            events=timeline.events_of(row),
            skipped=row.skipped,
            support=support.details_of(row),
            verbs=[
                (verb, self.address(verb.name, row.pk))
                for verb in verbs.VERBS
                if verb.allowed(self, request) and not verb.refusal(row)
            ],
            may_resolve=self.has_resolve_permission(request) and row.state == WriteState.AMBIGUOUS,
            may_see_content=self.has_payload_permission(request) and row.kind != "clear",
        )

    def summary(self, request: HttpRequest, write: WriteIntent) -> dict[str, Any]:
        """What the head of every page of one write shows."""
        may_see = request.user.has_perm("convsessions.view_conversationsession")
        return {
            "write": write,
            "badge": display.state_badge(write),
            "why": display.why(write),
            "progress": display.progress(write),
            "session_name": name_of(write.session),
            "session_address": self.address("change", write.session_id, model=ConversationSession) if may_see else "",
            "waiting": WriteIntent.objects.queue(write.session_id).filter(sequence__gt=write.sequence).count(),
        }

    # -- what can be done ----------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        return [
            self.route("resolve", outside_transactions(self.resolve_view)),
            self.route("content", self.content_view),
            self.list_route("overview/", self.overview_view, "overview"),
            self.list_route("batch/<str:token>/", self.batch_view, "batch"),
            *(self.route(verb.name, self.verb_view, verb=verb) for verb in verbs.VERBS),
            *super().get_urls(),
        ]

    def resolve_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        self.require(request, self.has_view_permission(request), self.has_resolve_permission(request))
        return ResolvePage(self, request, self.find(request, object_id)).respond()

    def overview_view(self, request: HttpRequest) -> HttpResponse:
        self.require(request, self.has_view_permission(request))
        return overview.show(self, request)

    def batch_view(self, request: HttpRequest, token: str) -> HttpResponse:
        self.require(request, self.has_view_permission(request), self.has_reconcile_permission(request))
        return batches.show(self, request, token)

    def content_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        self.require(request, self.has_view_permission(request), self.has_payload_permission(request))
        return content.show(self, request, self.find(request, object_id))

    def verb_view(self, request: HttpRequest, object_id: str, verb: verbs.Verb) -> HttpResponse:
        self.require(request, self.has_view_permission(request), verb.allowed(self, request))
        return verbs.respond(self, request, self.find(request, object_id), verb)

    def has_reconcile_permission(self, request: HttpRequest) -> bool:
        return self._holds(request, "reconcile_writeintent")

    def has_resolve_permission(self, request: HttpRequest) -> bool:
        return self._holds(request, "resolve_writeintent")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return self._holds(request, "cancel_writeintent")

    def has_payload_permission(self, request: HttpRequest) -> bool:
        return self._holds(request, "view_payload")

    @staticmethod
    def _holds(request: HttpRequest, codename: str) -> bool:
        return request.user.has_perm(f"convsessions.{codename}")

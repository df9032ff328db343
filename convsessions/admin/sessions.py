"""The list of sessions, and the page of one."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls.resolvers import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import WriteState

from . import drift
from .display import age, badge, progress, short, short_id, state_badge, why
from .filters import AttentionFilter
from .pages import JournalAdmin, outside_transactions
from .searching import search_sessions

NEWEST_WRITES = 20


class SessionList(ChangeList):
    """Counts the open writes of the sessions on the page, in one query."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        sessions: list[Any] = list(self.result_list)
        queues = count_queues(sessions)
        for session in sessions:
            session.queue = queues.get(session.pk, {})
        self.result_list = sessions


class SessionAdmin(JournalAdmin):
    list_display = ("name", "state", "open_writes", "owner", "conversation", "last_activity")
    list_select_related = ()  # else Django joins the owners, who may be in another database
    list_filter = (AttentionFilter,)
    ordering = ("-updated_at",)
    search_fields = ("key",)
    search_help_text = _(
        "The id of a session, conversation, write, request or remote item, a session's key or a part of it, or its "
        "owner's name."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).prefetch_related("owner").defer("metadata")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SessionList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        return (search_sessions(queryset, term) if term else queryset), False

    @admin.display(description=_("session"))
    def name(self, session: ConversationSession) -> SafeString:
        return format_html('<span class="cs-name">{}</span>', name_of(session))

    @admin.display(description=_("state"))
    def state(self, session: Any) -> SafeString:
        return queue_badge(session.queue)

    @admin.display(description=_("open writes"))
    def open_writes(self, session: Any) -> int:
        return sum(number for (_state, _attention), number in session.queue.items())

    @admin.display(description=_("conversation"))
    def conversation(self, session: ConversationSession) -> SafeString | str:
        return short_id(session.conversation_id) if session.conversation_id else gettext("none yet")

    @admin.display(description=_("last activity"))
    def last_activity(self, session: ConversationSession) -> SafeString | str:
        return age(session.updated_at)

    def get_urls(self) -> list[URLPattern]:
        return [self.route("verify", outside_transactions(self.verify_view)), *super().get_urls()]

    def verify_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        self.require(request, self.has_view_permission(request), self._may_verify(request))
        return drift.show(self, request, self.find(request, object_id))

    @staticmethod
    def _may_verify(request: HttpRequest) -> bool:
        return request.user.has_perm("convsessions.reconcile_writeintent")

    def show(self, request: HttpRequest, row: Any) -> HttpResponse:
        row.queue = count_queues([row]).get(row.pk, {})
        return self.page(
            request,
            "conversationsession/detail.html",
            title=gettext("Session %(name)s") % {"name": name_of(row)},
            original=row,
            session=row,
            badge=queue_badge(row.queue),
            open_count=self.open_writes(row),
            writes=self._newest_writes(request, row),
            verify_address=self.address("verify", row.pk) if self._may_verify(request) else "",
        )

    def _newest_writes(self, request: HttpRequest, session: ConversationSession) -> list[dict[str, Any]] | None:
        """None for those who may not see writes, and on a site without their pages."""
        if not (
            request.user.has_perm("convsessions.view_writeintent") and self.address("changelist", model=WriteIntent)
        ):
            return None
        may_resolve = request.user.has_perm("convsessions.resolve_writeintent")
        newest = session.writes.order_by("-sequence").defer("popped", "doomed_ids")[:NEWEST_WRITES]
        return [self._row(write, may_resolve=may_resolve) for write in newest]

    def _row(self, write: WriteIntent, *, may_resolve: bool) -> dict[str, Any]:
        resolvable = may_resolve and write.state == WriteState.AMBIGUOUS
        return {
            "write": write,
            "badge": state_badge(write),
            "why": why(write),
            "progress": progress(write),
            "resolve_address": self.address("resolve", write.pk, model=WriteIntent) if resolvable else "",
        }


Queue = dict[tuple[str, bool], int]
"""How many open writes there are by state and by whether they need attention."""


def count_queues(sessions: list[Any]) -> dict[Any, Queue]:
    """The open writes of each of `sessions`."""
    queues: dict[Any, Queue] = {}
    rows = WriteIntent.objects.open().filter(session__in=[session.pk for session in sessions]).order_by()
    for pk, state, attention, number in rows.values_list("session_id", "state", "needs_attention").annotate(
        Count("pk")
    ):
        queues.setdefault(pk, {})[state, bool(attention)] = number
    return queues


def queue_badge(queue: Queue) -> SafeString:
    """What the open writes mean for the whole session: the most urgent thing there is to say."""
    if (WriteState.AMBIGUOUS, True) in queue:
        return badge("ambiguous", gettext("ambiguous"))
    if any(attention for _state, attention in queue):
        return badge("held", gettext("held"))
    if any(state == WriteState.SENDING for state, _attention in queue):
        return badge("sending", gettext("sending"))
    return badge("pending", gettext("pending")) if queue else badge("none", gettext("idle"))


def name_of(session: ConversationSession) -> str:
    """The key, as people know it, else the start of the id."""
    return session.key or short(session.pk)

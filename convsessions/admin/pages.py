"""What all pages of the journal share: nobody adds, changes or deletes its rows by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import connections, models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, path, reverse
from django.urls.resolvers import URLPattern
from django.utils.functional import cached_property
from django.utils.text import capfirst

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    CountingPaginator = Paginator[Any]
else:
    ModelAdmin, CountingPaginator = admin.ModelAdmin, Paginator

MOST_COUNTED = 10_000
"""Rows that a list counts and can page to; a filter or a search finds older ones. Counting a million takes too long."""


class CappedPaginator(CountingPaginator):
    """Counts no further than MOST_COUNTED rows."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        counted: int = rows.order_by()[: MOST_COUNTED + 1].count()
        self.capped = counted > MOST_COUNTED
        return min(counted, MOST_COUNTED)


class JournalAdmin(ModelAdmin):
    """A list and a page to read. Subclasses say how one row is shown in `show`."""

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 50
    sortable_by = ()

    class Media:
        css: ClassVar = {"all": ("convsessions/admin.css",)}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(
            request, {"title": capfirst(self.opts.verbose_name_plural), **(extra_context or {})}
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.require(request, self.has_view_permission(request))
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return self.show(request, self.find(request, object_id))

    def show(self, request: HttpRequest, row: Any) -> HttpResponse:
        """The page of one row."""
        raise NotImplementedError

    def require(self, request: HttpRequest, *held: bool) -> None:
        """Raises PermissionDenied unless every one of the permissions is held."""
        if not all(held):
            raise PermissionDenied

    def find(self, request: HttpRequest, object_id: str) -> Any:
        """The row of an address, with the rows it refers to. Raises Http404."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        return row

    def page(
        self, request: HttpRequest, template: str, *, title: Any, original: models.Model | None, **context: Any
    ) -> TemplateResponse:
        """A page in the frame of the admin."""
        request.current_app = self.admin_site.name
        frame = {**self.admin_site.each_context(request), "opts": self.opts, "title": title, "original": original}
        return TemplateResponse(request, f"admin/convsessions/{template}", {**frame, **context})

    def address(self, name: str, *args: Any, model: type[models.Model] | None = None) -> str:
        """The address of a page of this site; "" where `model` (by default this one) is not registered with it."""
        opts = (model or self.model)._meta  # noqa: SLF001 - documented
        name = f"admin:{opts.app_label}_{opts.model_name}_{name}"
        try:
            return reverse(name, args=args, current_app=self.admin_site.name)
        except NoReverseMatch:
            return ""

    def route(self, name: str, view: Callable[..., HttpResponse], **arguments: Any) -> URLPattern:
        """The URL of a further page of one row: ``<id>/<name>/``."""
        guarded = self.admin_site.admin_view(view)
        return path(
            f"<path:object_id>/{name}/", guarded, arguments, name=f"{self.opts.app_label}_{self.opts.model_name}_{name}"
        )

    def list_route(self, address: str, view: Callable[..., HttpResponse], name: str) -> URLPattern:
        """The URL of a page that is not about one row."""
        return path(
            address, self.admin_site.admin_view(view), name=f"{self.opts.app_label}_{self.opts.model_name}_{name}"
        )


def outside_transactions(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Exempt a view that reads from the network from ATOMIC_REQUESTS, for every database of the site."""

    def exempt(*args: Any, **kwargs: Any) -> HttpResponse:
        return view(*args, **kwargs)

    for using in connections:
        exempt = transaction.non_atomic_requests(using)(exempt)
    return exempt

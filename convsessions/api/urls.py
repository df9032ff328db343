"""The URLs of the API, for ``include("convsessions.api.urls")`` under any prefix, and any number of times."""

from django.apps import apps
from django.urls import path

from . import health, items, sessions, writes
from .endpoint import Endpoint

if apps.is_installed("drf_spectacular"):
    from .openapi import schema

    schema.describe()

app_name = "convsessions_api"


def _path(route: str, view: type[Endpoint]) -> object:
    return path(route, view.as_view(), name=view.url_name)


urlpatterns = [
    _path("sessions/", sessions.Sessions),
    _path("sessions/<str:session_id>/", sessions.Session),
    _path("sessions/<str:session_id>/items/", items.Items),
    _path("sessions/<str:session_id>/pop/", items.Pop),
    _path("sessions/<str:session_id>/clear/", items.Clear),
    _path("sessions/<str:session_id>/verify/", sessions.Verify),
    _path("sessions/<str:session_id>/writes/", writes.SessionWrites),
    _path("writes/<str:write_id>/", writes.Write),
    _path("writes/<str:write_id>/cancel/", writes.Cancel),
    _path("writes/<str:write_id>/reconcile/", writes.Reconcile),
    _path("writes/<str:write_id>/resolve/", writes.Resolve),
    _path("health/", health.Health),
]

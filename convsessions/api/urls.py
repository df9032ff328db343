"""The URLs of the API, for ``include("convsessions.api.urls")`` under any prefix, and any number of times."""

from django.urls import path

from . import health, items, sessions, writes

app_name = "convsessions_api"

urlpatterns = [
    path("sessions/", sessions.Sessions.as_view(), name="sessions"),
    path("sessions/<str:session_id>/", sessions.Session.as_view(), name="session"),
    path("sessions/<str:session_id>/items/", items.Items.as_view(), name="items"),
    path("sessions/<str:session_id>/pop/", items.Pop.as_view(), name="pop"),
    path("sessions/<str:session_id>/clear/", items.Clear.as_view(), name="clear"),
    path("sessions/<str:session_id>/verify/", sessions.Verify.as_view(), name="verify"),
    path("sessions/<str:session_id>/writes/", writes.SessionWrites.as_view(), name="session-writes"),
    path("writes/<str:write_id>/", writes.Write.as_view(), name="write"),
    path("writes/<str:write_id>/cancel/", writes.Cancel.as_view(), name="cancel"),
    path("writes/<str:write_id>/reconcile/", writes.Reconcile.as_view(), name="reconcile"),
    path("writes/<str:write_id>/resolve/", writes.Resolve.as_view(), name="resolve"),
    path("health/", health.Health.as_view(), name="health"),
]

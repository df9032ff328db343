"""Mount under any prefix that ends in ``v1/``: ``path("v1/", include("convsessions.sandbox.urls"))``."""

from django.urls import path, re_path

from . import control, views

app_name = "convsessions_sandbox"
urlpatterns = [
    path("conversations", views.conversations),
    path("conversations/<str:conversation_id>", views.conversation),
    path("conversations/<str:conversation_id>/items", views.items),
    path("conversations/<str:conversation_id>/items/<str:item_id>", views.item),
    path("sandbox/requests", control.requests),
    path("sandbox/faults", control.fault_supply),
    path("sandbox/settings", control.sandbox_settings),
    path("sandbox/reset", control.reset),
    path("sandbox/conversations/<str:conversation_id>", control.conversation),
    path("sandbox/conversations/<str:conversation_id>/items", control.foreign_items),
    re_path(r"", views.nowhere),
]

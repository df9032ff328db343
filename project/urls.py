from django.conf import settings
from django.contrib import admin
from django.urls import include, path

from . import views

urlpatterns = [
    path("", views.start, name="start"),
    path("admin/", admin.site.urls),
    path("api/", include("convsessions.api.urls")),
]
if settings.TALKS_TO_SANDBOX:
    urlpatterns.append(path("sandbox/v1/", include("convsessions.sandbox.urls")))

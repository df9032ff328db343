from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from . import views

urlpatterns = [
    path("", views.start, name="start"),
    path("admin/", admin.site.urls),
    path("api/", include("convsessions.api.urls")),
    path("api/schema/", SpectacularAPIView.as_view(permission_classes=[]), name="schema"),
    path("api/docs/", SpectacularSwaggerView.as_view(permission_classes=[]), name="docs"),
]
if settings.TALKS_TO_SANDBOX:
    urlpatterns.append(path("sandbox/v1/", include("convsessions.sandbox.urls")))

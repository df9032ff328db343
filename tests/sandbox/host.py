"""The urlconf of a host site that mounts the sandbox under a prefix of its own."""

from django.urls import include, path

urlpatterns = [path("mock/v1/", include("convsessions.sandbox.urls"))]

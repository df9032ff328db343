"""What the rest of somebody else's site relies on is the same with convsessions as without it."""

from __future__ import annotations

import json

from .foreign import ForeignSite, Variant

WITHOUT = """
INSTALLED_APPS = [app for app in INSTALLED_APPS if app not in {"convsessions", "django_q"}]
ROOT_URLCONF = "host.theirs"
"""
WITH = 'ROOT_URLCONF = "host.theirs_and_ours"\n'
THEIRS = """
REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "host.theirs.explain",
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.PageNumberPagination",
    "PAGE_SIZE": 7,
    "DEFAULT_THROTTLE_RATES": {"anon": "3/min"},
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.AnonRateThrottle"],
}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"theirs": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["theirs"], "level": "ERROR"},
}
"""
FILES = {
    "host/theirs.py": """
from django.contrib import admin
from django.urls import path
from rest_framework.exceptions import ParseError
from rest_framework.response import Response
from rest_framework.views import APIView

def explain(error, context):
    return Response({"theirs": type(error).__name__}, status=getattr(error, "status_code", 500))

class Failing(APIView):
    def get(self, request):
        raise ParseError

urlpatterns = [path("admin/", admin.site.urls), path("failing/", Failing.as_view())]
""",
    "host/theirs_and_ours.py": """
from django.urls import include, path
from host.theirs import urlpatterns
urlpatterns = [*urlpatterns, path("api/", include("convsessions.api.urls"))]
""",
}
LOOK = """
import json, logging, signal, socket, sys, warnings
from django.conf import settings
from django.contrib import admin
from django.core import signals
from django.test import Client
from rest_framework.settings import api_settings

def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return f"{value.__module__}.{value.__qualname__}" if callable(value) else repr(value)

client = Client(SERVER_NAME="localhost")
answers = [[reply.status_code, reply.json()] for reply in (client.get("/failing/") for _ in range(4))]
loggers = ["", "django", "django.request", "django.server", "openai", "httpx", "rest_framework"]
print(json.dumps({
    "answers": answers,
    "drf": {name: plain(getattr(api_settings, name)) for name in sorted(api_settings.defaults)},
    "logging": [[name, logging.getLogger(name).level, logging.getLogger(name).propagate,
                 [type(handler).__name__ for handler in logging.getLogger(name).handlers]] for name in loggers],
    "actions": [name for name, _ in admin.site.actions],
    "receivers": [len(each.receivers) for each in (signals.request_started, signals.request_finished)],
    "hooks": [repr(sys.excepthook), repr(socket.getdefaulttimeout()), repr(warnings.showwarning.__module__)],
    "signals": [repr(signal.getsignal(each)) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)],
    "middleware": settings.MIDDLEWARE,
    "admin": sorted(model._meta.label for model in admin.site._registry
                    if model._meta.app_label not in {"convsessions", "django_q"}),
}))
"""


def look(site: ForeignSite, name: str, settings: str) -> dict:
    site.become(name, Variant(THEIRS + settings, FILES))
    return json.loads(site.run_python(LOOK)[-1])


def test_nothing_that_the_rest_of_the_site_uses_is_replaced(foreign_site):
    before = look(foreign_site, "theirs", WITHOUT)
    after = look(foreign_site, "theirs_and_ours", WITH)

    assert after == before
    assert before["answers"] == [[400, {"theirs": "ParseError"}]] * 3 + [[429, {"theirs": "Throttled"}]]

"""The ways in which somebody else's site differs from the one that `startproject` begins."""

from __future__ import annotations

from .foreign import Variant

PEOPLE = {
    "people/__init__.py": "",
    "people/models.py": """
import uuid
from django.contrib.auth.models import AbstractUser
from django.db import models

class Person(AbstractUser):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
""",
}
ROUTING = {
    "host/routing.py": """
class JournalRouter:
    def db_for_read(self, model, **hints):
        return "journal" if model._meta.app_label == "convsessions" else None

    db_for_write = db_for_read

    def allow_migrate(self, db, app_label, **hints):
        return (db == "journal") == (app_label == "convsessions")
"""
}
STAFF = {
    "host/staff.py": """
from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig

class StaffConfig(AdminConfig):
    default_site = "host.staff.StaffSite"

class StaffSite(AdminSite):
    site_header = "Staff only"

    def __init__(self, name="staff"):
        super().__init__(name)
""",
    "host/staff_urls.py": """
from django.contrib import admin
from django.urls import include, path
urlpatterns = [path("staff/", admin.site.urls), path("api/", include("convsessions.api.urls"))]
""",
}
PREFIXED = {
    "host/prefixed_urls.py": """
from django.contrib import admin
from django.urls import include, path
urlpatterns = [
    path("admin/", admin.site.urls),
    path("<slug:tenant>/chat/v2/", include(("convsessions.api.urls", "chat"), namespace="chat")),
]
"""
}
WITHOUT_API = {
    "host/plain_urls.py": """
from django.contrib import admin
from django.urls import path
urlpatterns = [path("admin/", admin.site.urls)]
"""
}
CSP = {
    "host/csp.py": """
class StrictPolicy:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        response = self.get_response(request)
        response["Content-Security-Policy"] = "default-src 'self'; object-src 'none'; base-uri 'none'"
        return response
"""
}

VARIANTS = {
    "five_lines": Variant(),
    "user_with_uuid": Variant(
        'INSTALLED_APPS += ["people"]\nAUTH_USER_MODEL = "people.Person"\n', PEOPLE, own_migrations=("people",)
    ),
    "atomic_requests": Variant('DATABASES["default"]["ATOMIC_REQUESTS"] = True\n'),
    "local_time": Variant('USE_TZ = False\nTIME_ZONE = "Asia/Kolkata"\n'),
    "own_database": Variant(
        'DATABASES["journal"] = {**DATABASES["default"], "NAME": BASE_DIR / "journal.sqlite3"}\n'
        'DATABASE_ROUTERS = ["host.routing.JournalRouter"]\n',
        ROUTING,
        databases=("default", "journal"),
    ),
    "own_admin": Variant(
        'INSTALLED_APPS[INSTALLED_APPS.index("django.contrib.admin")] = "host.staff.StaffConfig"\n'
        'ROOT_URLCONF = "host.staff_urls"\n',
        STAFF,
        admin="/staff/",
        admin_name="staff",
    ),
    "prefix_and_namespace": Variant('ROOT_URLCONF = "host.prefixed_urls"\n', PREFIXED, api="/acme/chat/v2/"),
    "without_api": Variant('ROOT_URLCONF = "host.plain_urls"\n', WITHOUT_API, api=None),
    "without_queue": Variant(
        'INSTALLED_APPS.remove("django_q")\ndel Q_CLUSTER\n'
        'CONVSESSIONS["DISPATCHER"] = "convsessions.enqueue.dispatch_nowhere"\n',
        has_queue=False,
    ),
    "strict_csp": Variant('MIDDLEWARE += ["host.csp.StrictPolicy"]\n', CSP),
}

"""The smallest real site. The environment switches it to the real things; see README.md, "Settings"."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import dj_database_url

from convsessions.conf import RULES

BASE_DIR = Path(__file__).resolve().parent.parent


def _flag(name: str, default: str) -> bool:
    return os.environ.get(name, default).lower() in {"1", "true", "yes", "on"}


def _from_environment(name: str) -> Any:
    """The value of ``CONVSESSIONS_<name>``: JSON where it is JSON, else the text itself."""
    text = os.environ[f"CONVSESSIONS_{name}"]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


DEBUG = _flag("DJANGO_DEBUG", "1")
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or (
    "only-for-development-on-this-machine" if DEBUG else secrets.token_urlsafe(50)
)
ALLOWED_HOSTS = [
    host for host in os.environ.get("DJANGO_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",") if host
]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
    "convsessions",
    "convsessions.sandbox",
    "project",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": dj_database_url.config(
        default=f"sqlite:///{BASE_DIR / 'db.sqlite3'}", conn_max_age=60, conn_health_checks=True
    )
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # Writers queue at BEGIN instead of failing in the middle, and readers never wait for them.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 30,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication",
        "rest_framework.authentication.BasicAuthentication",
    ],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "convsessions",
    "DESCRIPTION": "Conversations of the OpenAI API that are safe to write to.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    # Its files come with drf-spectacular-sidecar, not from a CDN.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": [],
}

CONVSESSIONS = {name: _from_environment(name) for name in RULES if f"CONVSESSIONS_{name}" in os.environ}

# Without a key there is nothing real to talk to: then this site serves a sandbox, talks to that (or to the one that
# OPENAI_BASE_URL names), and its start page says so.
TALKS_TO_SANDBOX = not os.environ.get("OPENAI_API_KEY")
API_URL = os.environ.get("OPENAI_BASE_URL") or (
    "http://127.0.0.1:8000/sandbox/v1" if TALKS_TO_SANDBOX else "https://api.openai.com/v1"
)
if TALKS_TO_SANDBOX:
    CONVSESSIONS.setdefault("CLIENT_FACTORY", "project.clients.sandbox_client")
    CONVSESSIONS.setdefault("ASYNC_CLIENT_FACTORY", "project.clients.async_sandbox_client")

Q_CLUSTER: dict[str, Any] = {
    "name": "convsessions",
    "workers": int(os.environ.get("Q_WORKERS", "2")),
    # HTTP timeout 30 < lease 45 < timeout 90 < retry: 90 * (1 + ceil((queue_limit + bulk) / workers)) and a margin
    "timeout": int(os.environ.get("Q_TIMEOUT", "90")),
    "retry": int(os.environ.get("Q_RETRY", "300")),
    "queue_limit": 1,
    "bulk": 1,
    "poll": float(os.environ.get("Q_POLL", "0.1")),
    "guard_cycle": 0.5,
    "save_limit": 250,
    "ack_failures": True,
    "catch_up": False,
    "label": "Queue",
}
if "Q_BROKER_CLASS" in os.environ:
    Q_CLUSTER["broker_class"] = os.environ["Q_BROKER_CLASS"]
if "REDIS_URL" in os.environ:
    Q_CLUSTER["redis"] = os.environ["REDIS_URL"]
else:
    Q_CLUSTER["orm"] = "default"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"convsessions": {"handlers": ["console"], "level": "INFO"}},
}

"""Checks of what the site around us gives: the key and the address of the API, templates, the clock."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import zoneinfo
from typing import Any
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured
from django.template import TemplateDoesNotExist
from django.template.loader import get_template

from convsessions.conf import Settings, conf

PAGE = "admin/convsessions/page.html"


@register("convsessions")
def check_api(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """W011, W013: the environment from which the default client takes its key and its address."""
    if conf.CLIENT_FACTORY != Settings.CLIENT_FACTORY:
        return []
    found: list[CheckMessage] = []
    if not os.environ.get("OPENAI_API_KEY"):
        hint = "Set OPENAI_API_KEY in the environment of the workers and the site, or CLIENT_FACTORY."
        message = "There is no API key: every write will be held until there is one."
        found.append(checks.Warning(message, hint=hint, id="convsessions.W011"))
    if not _is_safe(os.environ.get("OPENAI_BASE_URL", "")):
        hint = "Use https:// in OPENAI_BASE_URL, or an address of this machine."
        message = "The API key and all content are sent in plain text."
        found.append(checks.Warning(message, hint=hint, id="convsessions.W013"))
    return found


def _is_safe(base_url: str) -> bool:
    """Whether nobody on the way can read along: TLS, or no way at all."""
    address = urlsplit(base_url)
    if address.scheme == "https" or not base_url:
        return True
    host = address.hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@register("convsessions")
def check_templates(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E004: the pages of the operators, where there is an admin."""
    if not apps.is_installed("django.contrib.admin"):
        return []
    try:
        get_template(PAGE)
    except (TemplateDoesNotExist, ImproperlyConfigured):
        hint = 'Set "APP_DIRS": True in TEMPLATES, or add django.template.loaders.app_directories.Loader.'
        message = "The pages on which operators repair writes have no templates."
        return [Error(message, hint=hint, id="convsessions.E004")]
    return []


@register("convsessions")
def check_clock(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """W012: without USE_TZ, moments are local times, and an hour comes twice each autumn."""
    if settings.USE_TZ or not _has_summer_time(settings.TIME_ZONE):
        return []
    hint = "Set USE_TZ = True, or a TIME_ZONE without summer time such as UTC."
    message = "In the hour that comes twice when summer time ends, waits and leases may last an hour longer or less."
    return [checks.Warning(message, hint=hint, id="convsessions.W012")]


def _has_summer_time(name: str) -> bool:
    zone, year = zoneinfo.ZoneInfo(name), dt.datetime.now(dt.UTC).year
    return len({dt.datetime(year, month, 15, tzinfo=zone).utcoffset() for month in range(1, 13)}) > 1

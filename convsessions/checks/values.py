"""Checks of the values in CONVSESSIONS."""

from __future__ import annotations

from typing import Any

from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from convsessions.ciphers import seal, unseal
from convsessions.conf import Settings, conf, problems
from convsessions.enqueue import READY_DISPATCHER

OF_THE_API = ("AUTHENTICATION_CLASSES", "PERMISSION_CLASSES", "ACCESS_CLASS")


@register("convsessions")
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E001: every value in CONVSESSIONS can be used. E002: the dotted paths can be imported."""
    found: list[CheckMessage] = [
        Error(f"CONVSESSIONS[{name!r}] cannot be used.", hint=f"It must be {rule}.", id="convsessions.E001")
        for name, rule in problems()
    ]
    if found:
        return found
    for name in ("CLIENT_FACTORY", "ASYNC_CLIENT_FACTORY", "DISPATCHER", "CIPHER", *OF_THE_API):
        for path in _paths(name):
            try:
                import_string(path)
            except ImportError:
                hint = "Give the dotted path of a callable."
                message = f"{path} in CONVSESSIONS[{name!r}] cannot be imported."
                found.append(Error(message, hint=hint, id="convsessions.E002"))
    return found


def _paths(name: str) -> list[str]:
    value = getattr(conf, name)
    return [value] if isinstance(value, str) else list(value or ())


@register("convsessions")
def check_cipher(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E003: the CIPHER can be made, and reads what it writes."""
    if any(problems()) or conf.CIPHER is None:
        return []
    try:
        if unseal(seal("[]")) == "[]":
            return []
    except Exception:  # noqa: BLE001, S110 - whatever a host's cipher raises may quote a key
        pass
    hint = "Give keys in CIPHER_KEYS, and install the extra `encryption`, if it is convsessions.ciphers.fernet."
    return [Error("Content cannot be encrypted with CONVSESSIONS['CIPHER'].", hint=hint, id="convsessions.E003")]


@register("convsessions")
def check_grace(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """W004: a lease outlives its request for as long as a late request may land."""
    if any(problems()) or conf.LEASE_GRACE >= conf.SETTLE_SECONDS:
        return []
    hint = "Make LEASE_GRACE at least SETTLE_SECONDS."
    message = "After a crash, a request may be repeated while the first one can still land."
    return [checks.Warning(message, hint=hint, id="convsessions.W004")]


@register("convsessions")
def check_clients(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """W005: a dispatcher that uses async clients, where the host chose its sync ones only."""
    own = conf.CLIENT_FACTORY != Settings.CLIENT_FACTORY and conf.ASYNC_CLIENT_FACTORY == Settings.ASYNC_CLIENT_FACTORY
    if any(problems()) or not own or conf.DISPATCHER != READY_DISPATCHER:
        return []
    message = "DISPATCHER delivers with the default async client, while CLIENT_FACTORY names clients of your own."
    return [checks.Warning(message, hint="Set ASYNC_CLIENT_FACTORY, too.", id="convsessions.W005")]

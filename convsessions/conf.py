"""Settings: one dict ``CONVSESSIONS`` in the host's settings, read at access, with typed defaults here.

Seconds may be floats. `problems` names every value that cannot be used; the system checks report them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, get_type_hints

from django.conf import settings as django_settings
from django.utils.module_loading import import_string

from .items.kinds import INCLUDABLE

API_ITEMS_PER_REQUEST = 20
"""The Conversations API takes at most 20 items a request (openai-agents documents it; a 21st answers 400)."""


UNKNOWN_TYPES = ("warn", "pass", "refuse")


class Settings:
    CHUNK_ITEMS: int = API_ITEMS_PER_REQUEST
    """Items a request, 1..20."""
    CHUNK_BYTES: int = 4 * 1024 * 1024
    """Bytes of JSON a request, unless a single item is larger."""
    MAX_ITEMS_PER_WRITE: int = 10_000
    MAX_ITEM_BYTES: int = 8 * 1024 * 1024
    """Bytes of JSON of one item, as sent; below MariaDB's default packet of 16 MiB."""
    UNKNOWN_ITEM_TYPES: str = "warn"
    """What becomes of an item whose type neither we nor the installed client know: ``warn``, ``pass`` or ``refuse``."""
    READ_INCLUDE: tuple[str, ...] | None = None
    """What a reading of the history asks for beyond what the API lists by itself. None: all, as reconciliation does."""
    READ_TIMEOUT: float = 60.0
    """Seconds that a reading of several requests may take in all."""
    REQUEST_TIMEOUT: float = 30.0
    """Seconds that one request may take in all, from before its journal entry to its last byte."""
    LEASE_GRACE: float = 15.0
    """Seconds that a lease outlives the deadline of its request."""
    SETTLE_SECONDS: float = 5.0
    """Seconds after a request's deadline before its absence from the history counts as evidence."""
    DELIVERY_BUDGET: float = 20.0
    """Seconds after which a delivery task begins no further request and hands over to a new task."""
    RETRY_BACKOFF: tuple[float, float] = (1.0, 300.0)
    """Seconds: the first wait, doubled with every failure in a row, and its cap."""
    VERIFY_WRITES: bool = False
    """Whether every append ends with a read that looks for copies which no reply told of (a proxy that sends twice)."""
    SWEEP_MINUTES: int = 1
    RETENTION_DAYS: float | None = None
    """Days after which `purge_payloads` removes the content of a settled write. None: it is kept."""
    WAIT_MAX: float = 30.0
    """Seconds that a caller may wait for a write in one call."""
    ERASE_ITEMS_ON_CLEAR: bool = False
    """Whether a clear or a deletion that does not say deletes every item first: the API keeps those of a deleted
    conversation."""
    CIPHER: str | None = None
    """Dotted path of ``f() -> convsessions.ciphers.Cipher``, which encrypts content in the journal. None: plain."""
    CIPHER_KEYS: tuple[str, ...] = ()
    """Keys of ``convsessions.ciphers.fernet``: the first one encrypts, all of them decrypt."""
    CLIENT_FACTORY: str = "convsessions.remote.clients.default_client"
    """Dotted path of ``f(session) -> openai.OpenAI``."""
    ASYNC_CLIENT_FACTORY: str = "convsessions.remote.clients.default_async_client"
    """Dotted path of ``f(session) -> openai.AsyncOpenAI``, which may be ``async def``."""
    ASYNC_THREADS: int = 4
    """Threads, and so database connections, that the async callers of one process share."""
    DISPATCHER: str = "convsessions.enqueue.dispatch_with_django_q"
    """Dotted path of ``f(session_id: str) -> None``, called after commit, which has `deliver_session` run soon."""
    READY_SESSIONS: int = 50
    """Sessions that one task of `dispatch_ready_with_django_q` serves at a time."""
    AUTHENTICATION_CLASSES: tuple[str, ...] | None = None
    """Dotted paths of the REST API's authentication classes. None: those of ``REST_FRAMEWORK``."""
    PERMISSION_CLASSES: tuple[str, ...] = ("rest_framework.permissions.IsAuthenticated",)
    ACCESS_CLASS: str = "convsessions.api.access.SessionAccess"
    """Dotted path of the class that says who may see and do what in the REST API."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name == "import_string":
            return object.__getattribute__(self, name)
        default = getattr(type(self), name)
        given = getattr(django_settings, "CONVSESSIONS", {})
        return given.get(name, default) if isinstance(given, dict) else default

    def import_string(self, name: str) -> Any:
        """The object that the dotted path in setting `name` stands for. Raises ImportError."""
        return import_string(getattr(self, name))


conf: Settings = Settings()

if TYPE_CHECKING:
    Rule = tuple[Callable[[Any], bool], str]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_int(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_seconds(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: _is_number(value) and low <= value <= high


def _is_backoff(value: Any) -> bool:
    return (
        isinstance(value, tuple | list) and len(value) == 2 and all(map(_is_number, value)) and 0 < value[0] <= value[1]
    )


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and "." in value


def _is_paths(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(map(_is_path, value))


def _is_keys(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(key, str) and len(key) == 44 for key in value)


def _is_include(value: Any) -> bool:
    return value is None or (isinstance(value, tuple | list) and all(name in INCLUDABLE for name in value))


RULES: dict[str, Rule] = {
    "CHUNK_ITEMS": (_is_int(1, API_ITEMS_PER_REQUEST), "a whole number from 1 to 20"),
    "CHUNK_BYTES": (_is_int(1024, 12 * 1024 * 1024), "a whole number of bytes from 1024 to 12 MiB"),
    "MAX_ITEMS_PER_WRITE": (_is_int(1, 1_000_000), "a whole number from 1 to 1,000,000"),
    "MAX_ITEM_BYTES": (_is_int(256, 64 * 1024 * 1024), "a whole number of bytes from 256 to 64 MiB"),
    "UNKNOWN_ITEM_TYPES": (lambda value: value in UNKNOWN_TYPES, "warn, pass or refuse"),
    "READ_INCLUDE": (_is_include, f"None or a list of {', '.join(INCLUDABLE)}"),
    "READ_TIMEOUT": (_is_seconds(0.05, 3600), "seconds, from 0.05 to 3600"),
    "REQUEST_TIMEOUT": (_is_seconds(0.05, 3600), "seconds, from 0.05 to 3600"),
    "LEASE_GRACE": (_is_seconds(0.05, 3600), "seconds, from 0.05 to 3600"),
    "SETTLE_SECONDS": (_is_seconds(0, 3600), "seconds, from 0 to 3600"),
    "DELIVERY_BUDGET": (_is_seconds(0.05, 86_400), "seconds, from 0.05 to 86400"),
    "RETRY_BACKOFF": (_is_backoff, "two numbers of seconds: the first wait and its cap, 0 < first <= cap"),
    "VERIFY_WRITES": (lambda value: isinstance(value, bool), "True or False"),
    "SWEEP_MINUTES": (_is_int(1, 1440), "a whole number of minutes from 1 to 1440"),
    "RETENTION_DAYS": (lambda value: value is None or _is_seconds(0, 36_500)(value), "None, or days from 0 to 36500"),
    "WAIT_MAX": (_is_seconds(0, 600), "seconds, from 0 to 600"),
    "ERASE_ITEMS_ON_CLEAR": (lambda value: isinstance(value, bool), "True or False"),
    "CIPHER": (lambda value: value is None or _is_path(value), "None or a dotted path"),
    "CIPHER_KEYS": (_is_keys, "a list of keys, each 32 bytes in URL-safe base64"),
    "CLIENT_FACTORY": (_is_path, "a dotted path"),
    "ASYNC_CLIENT_FACTORY": (_is_path, "a dotted path"),
    "ASYNC_THREADS": (_is_int(1, 256), "a whole number from 1 to 256"),
    "READY_SESSIONS": (_is_int(1, 1000), "a whole number from 1 to 1000"),
    "DISPATCHER": (_is_path, "a dotted path"),
    "AUTHENTICATION_CLASSES": (lambda value: value is None or _is_paths(value), "None or a list of dotted paths"),
    "PERMISSION_CLASSES": (_is_paths, "a list of dotted paths"),
    "ACCESS_CLASS": (_is_path, "a dotted path"),
}


def problems() -> Iterator[tuple[str, str]]:
    """Yield (setting, what it must be) for every setting that is unknown or whose value cannot be used."""
    given = getattr(django_settings, "CONVSESSIONS", {})
    if not isinstance(given, dict):
        yield "", "a dict"
        return
    known = get_type_hints(Settings)
    for name, value in given.items():
        if name not in known:
            yield name, f"one of {', '.join(sorted(known))}"
        elif not RULES[name][0](value):
            yield name, RULES[name][1]

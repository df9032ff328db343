"""What every view of the API has in common."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable
from typing import Any, ClassVar

from django.db import connections, transaction
from django.utils.module_loading import import_string
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from convsessions.conf import conf
from convsessions.exceptions import SessionNotFound, WriteNotFound
from convsessions.models import ConversationSession, WriteIntent

from . import problems, rows
from .access import Act, SessionAccess
from .parsing import AsciiJSONRenderer, StrictJSONParser

WRITES_SCOPE = "convsessions_writes"
"""Name of the rate in DEFAULT_THROTTLE_RATES which a host with ScopedRateThrottle sets for everything but reading."""


class Endpoint(APIView):
    """A view that answers in JSON, with problem details, under the host's throttling.

    No view runs in a transaction of its own, ATOMIC_REQUESTS or not: some read the remote, which must not hold locks,
    and a write must be committed before anybody can deliver it or wait for it. Each write is recorded in a transaction
    of its own, and a request records one at most.
    """

    url_name: ClassVar[str] = ""
    """The name of its URL; the OpenAPI document is made by it."""
    renderer_classes = (AsciiJSONRenderer,)
    parser_classes = (StrictJSONParser,)
    versioning_class = None

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., Any]:  # type: ignore[override]
        view: Callable[..., Any] = super().as_view(**initkwargs)
        for alias in connections:
            view = transaction.non_atomic_requests(using=alias)(view)
        return view

    def get_exception_handler(self) -> Callable[..., Any]:
        return problems.handle

    def get_authenticators(self) -> list[BaseAuthentication]:
        paths = conf.AUTHENTICATION_CLASSES
        return super().get_authenticators() if paths is None else [import_string(path)() for path in paths]

    def get_permissions(self) -> list[BasePermission]:
        return [import_string(path)() for path in conf.PERMISSION_CLASSES]

    @property
    def throttle_scope(self) -> str | None:
        # ScopedRateThrottle fails on a scope without a rate, and a host need not have ours.
        is_scoped = self.request.method not in SAFE_METHODS and WRITES_SCOPE in api_settings.DEFAULT_THROTTLE_RATES
        return WRITES_SCOPE if is_scoped else None

    @functools.cached_property
    def access(self) -> SessionAccess:
        access: SessionAccess = conf.import_string("ACCESS_CLASS")(self.request.user)
        return access

    def session(self, session_id: str, act: Act | None = None) -> ConversationSession:
        """The session, if the user may see it. Raises SessionNotFound; PermissionDenied if they may not do `act`."""
        found = self.access.visible(rows.sessions()).filter(pk=_uuid(session_id, SessionNotFound)).first()
        if found is None:
            raise SessionNotFound(f"no session {session_id}")
        session: ConversationSession = found
        self._check(session, act)
        return session

    def write(self, write_id: str, act: Act | None = None) -> WriteIntent:
        """The write, if the user may see its session. Raises WriteNotFound; PermissionDenied as `session`."""
        visible = self.access.visible(ConversationSession.objects.using(rows.alias()))
        found = rows.writes().select_related("session").filter(pk=_uuid(write_id, WriteNotFound), session__in=visible)
        write = found.first()
        if write is None:
            raise WriteNotFound(f"no write {write_id}")
        self._check(write.session, act)
        return write

    def _check(self, session: ConversationSession, act: Act | None) -> None:
        self.check_object_permissions(self.request, session)
        if act is not None and not self.access.allows(act, session):
            raise PermissionDenied


def _uuid(text: str, missing: type[Exception]) -> uuid.UUID:
    """The id in a URL, in its one canonical form. Raises `missing`: nothing has an id that is none."""
    try:
        found = uuid.UUID(text)
    except ValueError:
        found = None
    if found is None or str(found) != text.lower():
        raise missing("nothing has this id")
    return found

"""The session and the user that the arguments of a command name."""

from __future__ import annotations

import uuid
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from convsessions import operations
from convsessions.exceptions import KeyTaken
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession


def add_session_arguments(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--session", type=uuid.UUID, metavar="ID", help="the session by its id")
    which.add_argument("--key", metavar="KEY", help="the session by its key")
    parser.add_argument("--owner", metavar="USERNAME", help="with --key: whose session it is")


def named_session(options: dict[str, Any], *, create: bool = False) -> ConversationSession:
    """The session; with `create`, one that has the key is recorded if there is none. Raises CommandError."""
    owner = named_user(options["owner"])
    rows = ConversationSession.objects.using(alias())
    if options["session"] is not None:
        found = rows.filter(pk=options["session"]).first()
    else:
        digest = ConversationSession.digest_of_key(owner and owner.pk, options["key"])
        found = rows.filter(key_digest=digest).first()
        if found is None and create:
            try:
                return operations.create_session(owner=owner, key=options["key"])
            except KeyTaken:  # somebody else was quicker
                found = rows.filter(key_digest=digest).first()
    if found is None:
        raise CommandError("There is no such session.")
    return found


def named_user(name: str | None) -> Any:
    """The user with this name, None for none. Raises CommandError."""
    if name is None:
        return None
    user = get_user_model()._default_manager.filter(**{get_user_model().USERNAME_FIELD: name}).first()  # noqa: SLF001
    if user is None:
        raise CommandError(f"There is no user {name}.")
    return user

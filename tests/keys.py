"""Keys of a site's CIPHER, and what it is when one is gone."""

from __future__ import annotations

from typing import Any

from cryptography.fernet import Fernet

from convsessions.models import WriteIntent
from convsessions.states import HoldCode

HELD = (HoldCode.CONTENT, True)


class Keys:
    """The keys of the site: `lose` takes the present one away for another, `find` puts it back."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.kept = [new_key()]
        self._settings = settings
        settings["CIPHER"], settings["CIPHER_KEYS"] = "convsessions.ciphers.fernet", list(self.kept)
        settings["RETRY_BACKOFF"] = (600.0, 600.0)  # what is held stays so until it is tried again

    def lose(self) -> None:
        self._settings["CIPHER_KEYS"] = [new_key()]

    def find(self) -> None:
        self._settings["CIPHER_KEYS"] = [*self.kept, *self._settings["CIPHER_KEYS"]]


def new_key() -> str:
    return Fernet.generate_key().decode()


def now(write: WriteIntent) -> WriteIntent:
    return WriteIntent.objects.defer("popped").get(pk=write.pk)


def hold_of(write: WriteIntent) -> tuple[str, bool]:
    return now(write).hold_code, bool(now(write).needs_attention)

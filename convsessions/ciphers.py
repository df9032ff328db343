"""Encryption of people's content at rest: what the journal asks of a cipher, and one made of Fernet keys.

CIPHER is the dotted path of a callable that returns a `Cipher`. Stored text that it has encrypted is marked, so that
content from before, which is plain, stays readable, and no migration is needed to turn it on.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

from django.core.exceptions import ImproperlyConfigured

from .conf import conf
from .exceptions import ContentUnreadable

MARK = "enc:"
"""Before what is encrypted. Content is JSON, which cannot begin like this."""


class Cipher(Protocol):
    """Both take and return text; what `encrypt` returns has to be ASCII. `decrypt` may raise anything.

    A cipher may also have ``is_current(text) -> bool``: whether `encrypt` would use the same key now. Without it,
    `encrypt_content` writes everything anew each time.
    """

    def encrypt(self, text: str) -> str: ...

    def decrypt(self, text: str) -> str: ...


def seal(text: str) -> str:
    """`text` as it is stored: encrypted if there is a CIPHER. Nothing stays nothing. Raises ContentUnreadable."""
    if conf.CIPHER is None or not text:
        return text
    try:
        return MARK + _cipher().encrypt(text)
    except Exception as error:  # noqa: BLE001 - as in unseal
        kind = type(error).__name__
    raise ContentUnreadable(f"content cannot be encrypted with the present CIPHER: {kind}")


def is_sealed(stored: str) -> bool:
    """Whether this is what `seal` makes where there is a CIPHER."""
    return stored.startswith(MARK)


def is_current(stored: str) -> bool:
    """Whether `seal` would store this with the same key now; nothing needs no key. Raises nothing."""
    if not stored or not is_sealed(stored):
        return not stored or conf.CIPHER is None
    try:
        tell = getattr(_cipher(), "is_current", None)
        return tell is not None and bool(tell(stored.removeprefix(MARK)))
    except Exception:  # noqa: BLE001 - as in unseal, which says so
        return False


def unseal(stored: str) -> str:
    """What `seal` was given. Raises ContentUnreadable."""
    if not is_sealed(stored):
        return stored
    if conf.CIPHER is None:
        raise ContentUnreadable("content in the journal is encrypted, and there is no CIPHER to read it with")
    try:
        return _cipher().decrypt(stored.removeprefix(MARK))
    except Exception as error:  # noqa: BLE001 - whatever a cipher raises may quote what it read
        kind = type(error).__name__
    raise ContentUnreadable(f"content in the journal cannot be decrypted with the present CIPHER: {kind}")


def fernet() -> Cipher:
    """A CIPHER of the keys in CIPHER_KEYS: the first one encrypts, all of them decrypt, so that keys can be changed.

    Requires the package cryptography (extra ``encryption``). ``cryptography.fernet.Fernet.generate_key()`` makes a key.
    """
    return _of_keys(tuple(conf.CIPHER_KEYS))


@functools.lru_cache(maxsize=8)
def _of_keys(keys: tuple[str, ...]) -> Cipher:
    return _Fernets(keys)


class _Fernets:
    def __init__(self, keys: tuple[str, ...]) -> None:
        from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415 - an extra

        if not keys:
            raise ImproperlyConfigured("CIPHER_KEYS has no key")
        self._newest: Any = Fernet(keys[0])
        self._fernets: Any = MultiFernet([Fernet(key) for key in keys])

    def encrypt(self, text: str) -> str:
        return str(self._fernets.encrypt(text.encode()).decode("ascii"))

    def decrypt(self, text: str) -> str:
        return str(self._fernets.decrypt(text.encode()).decode())

    def is_current(self, text: str) -> bool:
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 - an extra

        try:
            self._newest.decrypt(text.encode())
        except InvalidToken:
            return False
        return True


def _cipher() -> Cipher:
    cipher: Cipher = conf.import_string("CIPHER")()
    return cipher

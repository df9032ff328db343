"""Columns that every supported database treats alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.query_utils import DeferredAttribute

from convsessions import ciphers
from convsessions.items import codec

if TYPE_CHECKING:
    TextField = models.TextField[Any, Any]
else:
    TextField = models.TextField


class ExactJSONField(TextField):
    """JSON kept as text: jsonb reorders keys and cannot hold U+0000, and MariaDB's JSON is text anyway."""

    if TYPE_CHECKING:
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        return None if value is None else codec.decode(value)

    def to_python(self, value: Any) -> Any:
        return value

    def get_prep_value(self, value: Any) -> Any:
        return None if value is None else codec.encode(value)

    def value_to_string(self, obj: models.Model) -> str:
        return codec.encode(self.value_from_object(obj))


class Sealed(str):
    """Encrypted text as it is stored: what nobody has asked for yet, or what is to be stored as it is."""

    __slots__ = ()


class _Content(DeferredAttribute):
    """Decrypts when the content is asked for, not when its row is read.

    A row whose key is missing can be listed, settled and purged; only what needs its content raises ContentUnreadable.
    """

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        value = super().__get__(instance, cls)
        if isinstance(value, Sealed):
            field: Any = self.field
            value = instance.__dict__[field.attname] = field.opened(value)
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.field.attname] = value


class ContentField(TextField):
    """Text that is somebody's conversation: encrypted at rest where the host has a CIPHER.

    Reading the attribute raises ContentUnreadable where the present CIPHER cannot, and so does saving it. What
    `values()` gives is as it is stored.
    """

    descriptor_class = _Content

    if TYPE_CHECKING:
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> str | None:
        return Sealed(value) if value is not None and ciphers.is_sealed(value) else value

    def opened(self, stored: Sealed) -> str:
        """What was sealed. Raises ContentUnreadable."""
        return ciphers.unseal(stored)

    def get_prep_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, Sealed) else ciphers.seal(value)


class ContentJSONField(ExactJSONField):
    """JSON that is somebody's conversation, as `ContentField`."""

    descriptor_class = _Content

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        if value is not None and ciphers.is_sealed(value):
            return Sealed(value)
        return super().from_db_value(value, expression, connection)

    def opened(self, stored: Sealed) -> Any:
        """What was sealed. Raises ContentUnreadable."""
        return codec.decode(ciphers.unseal(stored))

    def get_prep_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, Sealed) else ciphers.seal(codec.encode(value))


def choice_length(choices: type[models.TextChoices]) -> int:
    """The length of a column that holds any of `choices`."""
    return max(map(len, choices.values))

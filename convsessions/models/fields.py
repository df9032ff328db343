"""Columns that every supported database treats alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

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


class ContentField(TextField):
    """Text that is somebody's conversation: encrypted at rest where the host has a CIPHER."""

    if TYPE_CHECKING:
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> str | None:
        return None if value is None else ciphers.unseal(value)

    def get_prep_value(self, value: Any) -> Any:
        return None if value is None else ciphers.seal(value)


class ContentJSONField(ExactJSONField):
    """JSON that is somebody's conversation, as `ContentField`."""

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        return None if value is None else codec.decode(ciphers.unseal(value))

    def get_prep_value(self, value: Any) -> Any:
        return None if value is None else ciphers.seal(codec.encode(value))


def choice_length(choices: type[models.TextChoices]) -> int:
    """The length of a column that holds any of `choices`."""
    return max(map(len, choices.values))

"""References to users, who may live in another database than the journal.

Where the host's routers keep the two apart, no foreign key of the database holds such a reference: it is the id alone.
So whoever deletes users past the ORM (with SQL, or in another site) leaves ids behind that are nobody's: `owner`,
`author` and `actor` are None for these, as for NULL. Joins over them work within one database only.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import models, router, transaction
from django.db.models.fields.related_descriptors import ForwardManyToOneDescriptor

if TYPE_CHECKING:
    ForeignKey = models.ForeignKey[Any, Any]
    Accessor = ForwardManyToOneDescriptor[Any]
    Rows = models.QuerySet[Any]
else:
    ForeignKey, Accessor, Rows = models.ForeignKey, ForwardManyToOneDescriptor, models.QuerySet

logger = logging.getLogger("convsessions")


def set_null(collector: Any, field: Any, sub_objs: models.QuerySet[Any], using: str) -> None:
    """An `on_delete`: what refers to a deleted user refers to nobody, in whichever database the journal is.

    In the database of the users, that is part of the deletion, as with Django's own SET_NULL. In another one it happens
    once the deletion is committed, so that one that is rolled back changes nothing; where it fails (a line in the log,
    for the user is gone already), the id stays and is nobody's. One UPDATE for each reference, however many users.

    A user that is deleted elsewhere than where the routers keep users is not the journal's, so that only a journal in
    that same database (of another tenant, perhaps) can refer to them.
    """
    if using != router.db_for_write(field.remote_field.model):
        if router.allow_migrate_model(using, field.model):
            models.SET_NULL(collector, field, sub_objs, using)
        return
    journal = router.db_for_write(field.model)
    rows = sub_objs if journal == using else _AfterDeletion(field.model, sub_objs.query, using=journal)
    models.SET_NULL(collector, field, rows, using)


# Django asks for the rows before it calls us, unless we say, as its SET_NULL does, that we need none: where the journal
# is elsewhere, asking would find no table.
set_null.lazy_sub_objs = True  # type: ignore[attr-defined]


class _AfterDeletion(Rows):
    """Rows of another database than the users whose deletion changes them."""

    def update(self, **values: Any) -> int:
        # Django calls this within the transaction of the deletion, and not when it only shows what would be deleted.
        change = functools.partial(self._change, super().update, values)
        transaction.on_commit(change, using=router.db_for_write(get_user_model()))
        return 0

    def _change(self, update: Any, values: dict[str, Any]) -> None:
        try:
            update(**values)
        except Exception as error:  # noqa: BLE001 - the deletion is committed, and must not look failed
            logger.error("user_not_forgotten fields=%s error=%s", ",".join(values), type(error).__name__)  # noqa: TRY400


class UserAccessor(Accessor):
    """Reads the user of a row from where the routers keep users. None if there is no such user (any more).

    Django itself passes the row on to the routers, and takes those that have no opinion on users for saying: where the
    row is. Rows and users that were read from other databases than the routers name are left to Django.
    """

    def get_queryset(self, **hints: Any) -> models.QuerySet[Any]:
        users: models.QuerySet[Any] = super().get_queryset(**hints)
        return users.using(router.db_for_read(users.model)) if _is_at_home(hints["instance"]) else users

    def get_object(self, instance: Any) -> Any:
        users = self.get_queryset(instance=instance)
        return users.filter(self.field.get_reverse_related_filter(instance)).first()

    def get_prefetch_querysets(self, instances: list[Any], querysets: Any = None) -> Any:
        return super().get_prefetch_querysets(instances, querysets or [self.get_queryset(instance=instances[0])])

    def __set__(self, instance: Any, value: Any) -> None:
        is_user = isinstance(value, self.field.remote_field.model._meta.concrete_model)  # noqa: SLF001 - documented
        if not (is_user and _is_at_home(value) and _is_at_home(instance)):
            super().__set__(instance, value)
            return
        # As Django does, but without asking routers whether rows of two databases may be related.
        for ours, theirs in self.field.related_fields:
            setattr(instance, ours.attname, getattr(value, theirs.attname))
        self.field.set_cached_value(instance, value)


def _is_at_home(row: Any) -> bool:
    """Whether `row` is new, or was read from a database in which the routers keep its like."""
    kept_in = router.db_for_read(row.__class__), router.db_for_write(row.__class__)
    return row._state.db in (None, *kept_in)  # noqa: SLF001 - documented


class UserField(ForeignKey):
    """A foreign key to a user. Give it ``db_constraint=False`` and ``on_delete=set_null``."""

    forward_related_accessor_class = UserAccessor

"""Taking in the items of a caller, by the settings and by the types that the installed client knows."""

from __future__ import annotations

import logging
from functools import cache

from django.db import connections

from convsessions.conf import conf
from convsessions.items.intake import Intake, Rules, prepare_items
from convsessions.items.kinds import Vocabulary, with_types
from convsessions.journal.locking import alias
from convsessions.remote.vocabulary import item_types

OTHER_BYTES = 64 * 1024

logger = logging.getLogger(__name__)


def take_in(items: object) -> Intake:
    """`items` checked and encoded for sending. Raises InvalidItem, which names a path and quotes no content.

    Logs the types that neither our tables nor the installed client know, where UNKNOWN_ITEM_TYPES asks for it.
    """
    rules = Rules(
        max_items=conf.MAX_ITEMS_PER_WRITE,
        max_item_bytes=conf.MAX_ITEM_BYTES,
        types=_known(),
        refuse_unknown=conf.UNKNOWN_ITEM_TYPES == "refuse",
        max_stored_bytes=_statement_bytes(alias()),
    )
    intake = prepare_items(items, rules)
    if conf.UNKNOWN_ITEM_TYPES == "warn":
        for kind in sorted(intake.unknown):
            logger.warning("unknown_item_type type=%s", kind)
    return intake


@cache
def _statement_bytes(using: str) -> int | None:
    """MariaDB and MySQL hang up on a longer packet (by default 16 MiB); other databases have no limit near that."""
    connection = connections[using]
    if connection.vendor != "mysql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@max_allowed_packet")
        (packet,) = cursor.fetchone()
    # What stands beside the content in the statement; and a cipher makes four bytes of three.
    room = int(packet) - OTHER_BYTES
    return room if conf.CIPHER is None else room * 3 // 4


@cache
def _known() -> Vocabulary:
    return with_types(item_types())

"""Taking in the items of a caller, by the settings and by the types that the installed client knows."""

from __future__ import annotations

import logging
from functools import cache

from convsessions.conf import conf
from convsessions.items.intake import Intake, Rules, prepare_items
from convsessions.items.kinds import Vocabulary, with_types
from convsessions.remote.vocabulary import item_types

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
    )
    intake = prepare_items(items, rules)
    if conf.UNKNOWN_ITEM_TYPES == "warn":
        for kind in sorted(intake.unknown):
            logger.warning("unknown_item_type type=%s", kind)
    return intake


@cache
def _known() -> Vocabulary:
    return with_types(item_types())

"""The public Python API: record writes, read what became of them, read the remote history.

Recording joins the caller's transaction; nothing is sent before it commits. Reading the remote, waiting and delivering
must not happen inside a transaction and raise RuntimeError there. Authorisation is the caller's: these functions take
ids and do not know who is asking.
"""

from convsessions.delivery.drivers import adeliver, deliver
from convsessions.delivery.inline import settled_session, write_through
from convsessions.delivery.inquiry import inspect_write
from convsessions.journal.taking_over import Place

from .clearing import aclear_session, clear_session, delete_session, record_clear, record_deletion
from .delivering import adeliver_ready, answer_doorbell, close_loop, deliver_ready, try_to_deliver, work
from .encrypting import Encrypted, encrypt_content
from .exporting import export_items
from .purging import Purged, purge_payloads
from .reading import (
    MAX_LATEST,
    aget_items,
    aget_write,
    aiter_items,
    await_for_write,
    get_items,
    get_latest_items,
    get_write,
    iter_items,
    wait_for_write,
)
from .repairing import reconcile_write, remove_half_pairs, resolve_write, retry_write, verify_session
from .restoring import AfterRestore, after_restore
from .sessions import (
    UNCHANGED,
    Recorded,
    acreate_session,
    aget_session,
    check_conversation,
    create_session,
    get_session,
    open_session,
    update_session,
)
from .sweeping import due_sessions, sweep
from .writing import (
    aappend_items,
    acancel_write,
    apop_item,
    append_items,
    cancel_write,
    digest_of_items,
    pop_item,
    record_append,
    record_pop,
    take_over_append,
)

__all__ = [
    "MAX_LATEST",
    "UNCHANGED",
    "AfterRestore",
    "Encrypted",
    "Place",
    "Purged",
    "Recorded",
    "aappend_items",
    "acancel_write",
    "aclear_session",
    "acreate_session",
    "adeliver",
    "adeliver_ready",
    "after_restore",
    "aget_items",
    "aget_session",
    "aget_write",
    "aiter_items",
    "answer_doorbell",
    "apop_item",
    "append_items",
    "await_for_write",
    "cancel_write",
    "check_conversation",
    "clear_session",
    "close_loop",
    "create_session",
    "delete_session",
    "deliver",
    "deliver_ready",
    "digest_of_items",
    "due_sessions",
    "encrypt_content",
    "export_items",
    "get_items",
    "get_latest_items",
    "get_session",
    "get_write",
    "inspect_write",
    "iter_items",
    "open_session",
    "pop_item",
    "purge_payloads",
    "reconcile_write",
    "record_append",
    "record_clear",
    "record_deletion",
    "record_pop",
    "remove_half_pairs",
    "resolve_write",
    "retry_write",
    "settled_session",
    "sweep",
    "take_over_append",
    "try_to_deliver",
    "update_session",
    "verify_session",
    "wait_for_write",
    "work",
    "write_through",
]

"""What has to be done after the journal was restored from a backup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from convsessions.exceptions import SessionNotFound
from convsessions.journal.locking import alias
from convsessions.journal.restoring import doubt
from convsessions.models import WriteIntent
from convsessions.states import WriteState


@dataclass(frozen=True, slots=True)
class AfterRestore:
    """`sessions`: with open writes; `appends`, `pops`: writes in doubt; `ambiguous`: such as wait for a person anyway.

    `without_conversation`: those of the sessions of which the backup knows no conversation. If one was created since,
    it is left behind, for the API does not tell of it: their writes go to a new one.
    """

    sessions: int = 0
    appends: int = 0
    pops: int = 0
    ambiguous: int = 0
    without_conversation: int = 0


def after_restore(
    *, dry_run: bool = False, progress: Callable[[int, int], None] = lambda done, total: None
) -> AfterRestore:
    """Have delivery look for every open write in the remote history before it sends anything of it.

    To be called once on a journal that was restored from a backup, before the first worker, site or command delivers
    from it: what was sent since the backup is sent again otherwise. Where the history does not tell, the write becomes
    ambiguous. No harm is done by calling it twice, or in vain: every open write is looked for then. `dry_run`: change
    nothing; `progress` is called with the number of sessions done and their total. In short transactions of its own,
    one session each; makes no request.
    """
    using = alias()
    opened = WriteIntent.objects.using(using).open()
    sessions = list(opened.order_by().values_list("session_id", flat=True).distinct())
    ambiguous = opened.filter(state=WriteState.AMBIGUOUS).count()
    found = []
    for done, session_id in enumerate(sessions, start=1):
        try:
            found.append(doubt(session_id, using=using, dry_run=dry_run))
        except SessionNotFound:  # the host deleted it meanwhile
            continue
        progress(done, len(sessions))
    return AfterRestore(
        sessions=len(found),
        appends=sum(doubts.appends for doubts in found),
        pops=sum(doubts.pops for doubts in found),
        ambiguous=ambiguous,
        without_conversation=sum(not doubts.has_conversation for doubts in found),
    )

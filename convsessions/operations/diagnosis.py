"""What is wrong with the running set-up, in plain words, and what to do: the findings of the doctor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from django.core.checks import ERROR, WARNING, run_checks
from django.db import DatabaseError, InterfaceError

from convsessions.enqueue import queue_settings, schedule_databases
from convsessions.journal.locking import alias
from convsessions.remote.outcomes import Outcome
from convsessions.states import HUMAN_HOLDS, HoldCode, WriteState

from .condition import Cluster, Condition, Kind, condition, reach_api, sweep_patience

LONG = 3600.0
"""Seconds after which a hold that should end by itself is worth a look."""


class Level(IntEnum):
    """How bad it is; also the exit status of the command."""

    OK = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """`code`: stable, for monitoring; `advice`: "" where there is nothing to do."""

    code: str
    level: Level
    text: str
    advice: str = ""


RESTART = (
    "Start manage.py qcluster. If it runs, stop its main process with SIGTERM, end what is left of it, and start it "
    "again: a worker that was killed while idle can block all others, and django-q2's own status does not show it."
)
FIRST = "A cluster runs it within some minutes of its start (SWEEP_MINUTES)."
SCHEDULE = (
    "Run manage.py migrate, which adds the schedule of the sweep, and see that a cluster runs its scheduler; without "
    "django-q2, have operations.sweep or manage.py deliver run every minute."
)
MENDING = {
    HoldCode.BAD_KEY: "Give the workers a key that is valid, then Retry now in the admin, or wait.",
    HoldCode.FORBIDDEN: "Give the key the permission, or use another, then Retry now in the admin, or wait.",
    HoldCode.QUOTA: "Raise the quota or pay the bill, then Retry now in the admin, or wait.",
    HoldCode.MISSING: "Is the key of the right project? If the conversation was deleted elsewhere, clear the session.",
    HoldCode.CONTENT: "Put the key back into CIPHER_KEYS, where the workers run, then Retry now in the admin, or wait.",
}


def diagnose(*, with_api: bool = True) -> list[Finding]:
    """All findings, in the order in which to look at them. Makes one request to the API, unless told not to."""
    try:
        now = condition()
        checks = list(_of_checks())
    except (DatabaseError, InterfaceError) as error:
        advice = "See that the database runs and that manage.py migrate was run."
        return [Finding("database", Level.ERROR, f"The journal cannot be read: {type(error).__name__}.", advice)]
    api = [_of_api(reach_api())] if with_api else []
    return [*checks, *_of_queue(now), *_of_sessions(now), *_of_writes(now), *api]


def _of_checks() -> Iterator[Finding]:
    for message in run_checks(databases=sorted({alias(), *schedule_databases()})):
        if str(message.id).startswith("convsessions.") and not message.is_silenced() and message.level >= WARNING:
            level = Level.ERROR if message.level >= ERROR else Level.WARNING
            yield Finding(str(message.id), level, str(message.msg), message.hint or "")


def _of_queue(now: Condition) -> Iterator[Finding]:
    queue = queue_settings()
    if queue is None:
        yield Finding("queue", Level.OK, "There is no django-q2; something else must run the sweep or deliver.")
        return
    yield _of_sweep(now)
    waited = now.oldest_task_seconds or 0.0
    if waited > max(queue.timeout or 0, 60):
        advice = f"All workers are busy, or none runs. {RESTART}"
        yield Finding("queue", Level.ERROR, f"A task has been due for {_ago(waited)}.", advice)
    elif now.queue_depth is None:
        yield Finding("queue", Level.ERROR, "The queue's broker does not answer.", "See that it runs.")
    else:
        yield Finding("queue", Level.OK, f"{now.queue_depth} tasks wait in the queue.")


def _of_sweep(now: Condition) -> Finding:
    if now.sweep_seconds is None:
        return Finding("sweep", Level.WARNING, "The sweep has never run.", f"{FIRST} {RESTART}")
    text = f"The last sweep was {_ago(now.sweep_seconds)} ago."
    if now.cluster is Cluster.SWEEP_MISSING:
        return Finding("sweep", Level.ERROR, f"{text[:-1]}, though workers deliver: it is missing alone.", SCHEDULE)
    if now.cluster is Cluster.LATE:
        return Finding("sweep", Level.ERROR, f"{text[:-1]}, and no worker has given a sign lately.", RESTART)
    return Finding("sweep", Level.OK, text)


def _of_sessions(now: Condition) -> Iterator[Finding]:
    after = _ago(sweep_patience())
    if now.cluster is Cluster.NOT_DELIVERING:
        last = "never" if now.delivery_seconds is None else f"{_ago(now.delivery_seconds)} ago"
        text = f"The sweep comes and work waits, but nobody delivers: the last time was {last}."
        advice = "See that DISPATCHER hands over to a queue whose workers run; or run manage.py deliver now."
        yield Finding("deliveries", Level.ERROR, text, advice)
    if now.overdue.count:
        text = f"{now.overdue.count} sessions have had work for more than {after}, and nobody does it."
        yield Finding("overdue", Level.ERROR, text, "See that workers run; or run manage.py deliver now.")
    if now.dead_leases.count:
        text = f"{now.dead_leases.count} sessions wait for workers that died more than {after} ago."
        yield Finding("stuck_leases", Level.ERROR, text, "Any worker takes them over: run manage.py deliver now.")
    if not now.overdue.count and not now.dead_leases.count:
        yield Finding("sessions", Level.OK, "No session waits for a worker.")


def _of_writes(now: Condition) -> Iterator[Finding]:
    ambiguous = now.open[WriteState.AMBIGUOUS]
    if ambiguous.count:
        advice = "In the admin, filter the writes by what needs attention, and resolve them."
        yield Finding("ambiguous", Level.WARNING, _count(ambiguous, "are ambiguous"), advice)
    for code in HoldCode:
        held = now.held.get(code, Kind())
        if held.count and (code in HUMAN_HOLDS or held.oldest_seconds > LONG):
            advice = MENDING.get(code, "See the requests of one of them in the admin.")
            yield Finding(f"held_{code}", Level.WARNING, _count(held, f"are held: {code.label}"), advice)
    waiting = now.open[WriteState.PENDING].count + now.open[WriteState.SENDING].count
    yield Finding("writes", Level.OK, f"{waiting} writes are on their way.")


def _of_api(outcome: Outcome) -> Finding:
    if outcome.status in {200, 404}:
        return Finding("api", Level.OK, "The API answers, and takes the key.")
    text = f"The API cannot be read: {outcome.code}" + (f" (status {outcome.status})." if outcome.status else ".")
    advice = MENDING.get(outcome.hold, "See OPENAI_BASE_URL, the network, and the API's status page.")
    return Finding("api", Level.ERROR, text, advice)


def _count(kind: Kind, what: str) -> str:
    return f"{kind.count} writes {what}, the oldest for {_ago(kind.oldest_seconds)}."


def _ago(seconds: float) -> str:
    for size, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"

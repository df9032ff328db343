"""Delivers without a queue: for sites that have only cron, and for looking at what happens."""

from __future__ import annotations

import json
import signal
import threading
import time
import uuid
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from convsessions import operations
from convsessions.delivery.failures import FAILED, Endings
from convsessions.delivery.protocol import Ending
from convsessions.exceptions import SessionNotFound
from convsessions.models import WriteIntent

ENDINGS = (*(ending.value for ending in Ending), FAILED)


class Command(BaseCommand):
    help = (
        "Deliver the open writes of every session that has work and no worker, then end. It may run beside a queue, "
        "and more than once at a time: a session never has two workers."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--session", type=uuid.UUID, metavar="ID", help="this session only, due or not")
        often = parser.add_mutually_exclusive_group()
        often.add_argument("--once", action="store_true", help="end when nothing is due any more (the default)")
        often.add_argument("--watch", type=_seconds, metavar="SECONDS", help="look again every SECONDS, until stopped")
        parser.add_argument(
            "--ready",
            type=_sessions,
            metavar="N",
            help="serve up to N sessions at a time, in turns, with async clients",
        )
        parser.add_argument(
            "--json", action="store_true", help="one JSON object as the last line; with --watch, a line a round"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.asked_to_end, self.at_a_time = threading.Event(), options["ready"]
        self.said = ""
        if self.at_a_time and options["session"]:
            raise CommandError("--ready is for many sessions; leave it out with --session.")
        if options["watch"] or self.at_a_time:
            for signum in (signal.SIGINT, signal.SIGTERM):
                # The session in hand is delivered first: at most for its time budget and one request; with --ready, the
                # requests in flight are settled.
                signal.signal(signum, lambda *_: self.asked_to_end.set())
        while True:
            endings = self._round(options["session"], words=not options["json"])
            if not options["watch"] or self.asked_to_end.wait(options["watch"]):
                break
        if FAILED in endings.values():
            raise CommandError("Some sessions could not be delivered; the log says why.")

    def _round(self, only: uuid.UUID | None, *, words: bool) -> Endings:
        began = time.monotonic()
        endings: Endings = {}
        self._deliver_all(only, endings)
        self._show("")
        self._conclude(endings, time.monotonic() - began, words=words)
        return endings

    def _deliver_all(self, only: uuid.UUID | None, endings: Endings) -> None:
        """Deliver until nothing is due or the end was asked for, the longest waiting first."""
        while due := _due(only, endings):
            for session_id in due:
                if self.asked_to_end.is_set():
                    return
                self._show(f"{len(endings)} sessions delivered, {len(due)} due")
                if self.at_a_time:
                    endings |= operations.deliver_ready(self.at_a_time, asked_to_end=self.asked_to_end.is_set)
                    break
                endings[session_id] = _deliver(session_id, must_exist=only is not None)

    def _conclude(self, endings: Endings, seconds: float, *, words: bool) -> None:
        counts = {ending: list(endings.values()).count(ending) for ending in ENDINGS}
        attention = WriteIntent.objects.needing_attention().count()
        if words:
            said = ", ".join(f"{count} {ending.replace('_', ' ')}" for ending, count in counts.items() if count)
            line = f"{len(endings)} sessions{': ' if said else ''}{said}. {attention} writes need attention."
            if endings or line != self.said:  # a watch need not say again and again that nothing happens
                self.stdout.write(line)
            self.said = line
        else:
            result = {"sessions": len(endings), **counts, "needing_attention": attention, "seconds": round(seconds, 3)}
            self.stdout.write(json.dumps(result))
        self.stdout.flush()

    def _show(self, progress: str) -> None:
        """Progress in place, on a terminal only."""
        if self.stderr.isatty():
            self.stderr.write(f"\r{progress:<60}\r", ending="")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise ArgumentTypeError("give a number of seconds above 0")
    return seconds


def _sessions(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ArgumentTypeError("give a number of sessions above 0")
    return number


def _due(only: uuid.UUID | None, endings: Endings) -> list[uuid.UUID]:
    """What to deliver next. A session whose time budget ended may be due again; one that failed may not."""
    if only is not None and not endings:
        return [only]
    return [
        session_id
        for session_id in operations.due_sessions()
        if only in {None, session_id} and endings.get(session_id, Ending.DONE) == Ending.DONE
    ]


def _deliver(session_id: uuid.UUID, *, must_exist: bool) -> str:
    try:
        return operations.try_to_deliver(session_id)
    except SessionNotFound:
        if must_exist:
            raise CommandError(f"There is no session {session_id}.") from None
        return Ending.NOTHING_TO_DO.value

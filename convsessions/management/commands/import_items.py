"""Records the items of a file as appends to a session."""

from __future__ import annotations

import json
import re
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError

from convsessions import operations
from convsessions.conf import conf
from convsessions.exceptions import ConvsessionsError, IdempotencyConflict, InvalidInput, InvalidItem
from convsessions.management.named import add_session_arguments, named_session
from convsessions.management.progress import Bar
from convsessions.management.transcripts import BadLine, Entry, batches, entries
from convsessions.states import RefusalPolicy
from convsessions.values import MAX_KEY, check_text

BATCH = 500
_ITEM = re.compile(r"items\[(\d+)\]\.?(.*)")


class Command(BaseCommand):
    help = (
        "Record the items of FILE, one JSON object a line or one JSON array, as appends to a session; workers, or "
        "manage.py deliver, upload them. Every batch has an idempotency key, made from the name of the import: an "
        "import that was killed or that met an error is simply run again, and adds nothing twice."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="the file, or - for stdin")
        add_session_arguments(parser)
        parser.add_argument(
            "--name", help="of this import, by default the file's: within a session, a name stands for one transcript"
        )
        parser.add_argument("--batch", type=int, default=BATCH, metavar="N", help=f"items a write (default {BATCH})")
        parser.add_argument(
            "--on-refusal",
            choices=RefusalPolicy.values,
            default=RefusalPolicy.STOP.value,
            help="when the API refuses an item: send no more of its write, or go on without it (default: stop)",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.monotonic()
        if not 1 <= options["batch"] <= conf.MAX_ITEMS_PER_WRITE:
            raise CommandError(f"--batch: give a whole number from 1 to {conf.MAX_ITEMS_PER_WRITE}.")
        prefix = f"import/{_name(options)}/"
        with _opened(options["file"]) as (stream, size):
            session = named_session(options, create=True)
            done = self._record(session.pk, stream, size, prefix=prefix, options=options)
        if options["json"]:
            seconds = round(time.monotonic() - began, 3)
            self.stdout.write(json.dumps({"session": str(session.pk), **done, "seconds": seconds}))
        else:
            self.stdout.write(
                f"{done['items']} items in {done['writes']} writes for session {session.pk}; "
                f"{done['replayed']} of the writes were there before, {done['omitted']} items are not sent."
            )

    def _record(
        self, session_id: Any, stream: BinaryIO, size: int, *, prefix: str, options: dict[str, Any]
    ) -> dict[str, int]:
        """Record all batches. `size`: bytes of the stream, 0 if that is not known."""
        done = {"items": 0, "omitted": 0, "writes": 0, "replayed": 0}
        bar = Bar(self.stderr, "items")
        read = 0
        try:
            for number, batch in enumerate(batches(entries(stream), options["batch"])):
                how = {"idempotency_key": f"{prefix}{number}", "on_refusal": options["on_refusal"]}
                write, is_new = _append(session_id, batch, how, before=done["items"])
                done["items"] += len(batch)
                done["omitted"] += len(batch) - write.items_total
                done["writes"] += 1
                done["replayed"] += not is_new
                read += sum(entry.size for entry in batch)
                bar.show(done["items"], min(read / size, 1.0) if size else None)
        except BadLine as error:
            raise CommandError(f"{str(error)[0].upper()}{str(error)[1:]}. {_so_far(done['items'])}") from None
        finally:
            bar.end()
        return done


def _append(session_id: Any, batch: list[Entry], how: dict[str, Any], *, before: int) -> Any:
    try:
        return operations.record_append(session_id, [entry.item for entry in batch], **how)
    except InvalidItem as error:
        problem = _located(error, batch)
    except IdempotencyConflict:
        problem = f"{batch[0].where} to {batch[-1].where} differ from what was imported under this name before"
    except ConvsessionsError as error:
        problem = str(error)
    raise CommandError(f"{problem[0].upper()}{problem[1:]}. {_so_far(before)}")


def _located(error: InvalidItem, batch: list[Entry]) -> str:
    """`error`, with the line for the position in the batch."""
    found = _ITEM.fullmatch(error.field)
    if found is None:
        return str(error)
    field = f", {found[2]}" if found[2] else ""
    return f"{batch[int(found[1])].where}{field}: {error.problem}"


def _so_far(items: int) -> str:
    return f"Nothing of its batch was recorded; {items} items before it were, and are not added again next time."


def _name(options: dict[str, Any]) -> str:
    name = options["name"] or ("stdin" if options["file"] == "-" else Path(options["file"]).name)
    try:
        check_text("name", name, MAX_KEY - 32)
    except InvalidInput as error:
        raise CommandError(f"--{error}.") from None
    return str(name)


@contextmanager
def _opened(file: str) -> Iterator[tuple[BinaryIO, int]]:
    """The bytes of `file`, and how many there are (0: not known). Raises CommandError."""
    if file == "-":
        yield sys.stdin.buffer, 0
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115 - closed below; an error of the body is not one of opening it
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
    with stream:
        yield stream, Path(file).stat().st_size

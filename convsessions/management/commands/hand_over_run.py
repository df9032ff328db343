"""Takes over the write of an Agents SDK run that cannot be resumed."""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from convsessions.exceptions import ConvsessionsError
from convsessions.management.named import named_user


class Command(BaseCommand):
    help = (
        'Take over the write on which the Agents SDK says "Cannot reconcile the pending Session write": find out what '
        "of it was stored, add what is missing, and write the state with which the run can be resumed. Where the "
        "history does not tell, the write is left to an operator; run this again after the repair."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("state", type=Path, help="a file with what RunState.to_string() gave")
        parser.add_argument("--out", type=Path, required=True, help="the file for the state that can be resumed")
        parser.add_argument("--owner", metavar="USERNAME", help="who owns the session, if it has to be recorded")
        parser.add_argument("--patience", type=float, metavar="SECONDS", help="how long to wait for the write")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            from convsessions.agents import hand_over  # noqa: PLC0415 - the Agents SDK is an extra
        except ModuleNotFoundError as error:
            raise CommandError(f"There is no module {error.name}: install the extra, convsessions[agents].") from error
        owner = named_user(options["owner"])
        try:
            state = options["state"].read_text(encoding="utf-8")
            done = asyncio.run(hand_over(state, owner=owner, patience=options["patience"]))
        except (OSError, ConvsessionsError) as error:
            raise CommandError(str(error)) from error
        write = done.write and {"id": str(done.write.pk), "state": done.write.state}
        if done.may_resume:
            options["out"].write_text(str(done.state), encoding="utf-8")
        if options["json"]:
            self.stdout.write(json.dumps({"may_resume": done.may_resume, "write": write}))
        elif done.may_resume:
            self.stdout.write(f"Resume the run with {options['out']}.")
        if not done.may_resume and done.write:
            raise CommandError(
                f"Not yet: write {done.write.pk} is {done.write.state}. Run this again once it is saved."
            )

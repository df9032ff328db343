"""Examines the running set-up, and says what to do. For people, and with ``--json`` for monitoring."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from convsessions.operations.diagnosis import Finding, Level, diagnose

SIGNS = {Level.OK: "ok", Level.WARNING: "warning", Level.ERROR: "ERROR"}


class Command(BaseCommand):
    help = (
        "Say how delivery is doing, and what to do where something is wrong. Changes nothing; reads once from the API. "
        "Exit status: 0 all is well, 1 there are warnings, 2 there are errors."
    )
    # They are among the findings: an error in the settings must not keep the doctor from looking at the rest.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-api", action="store_true", help="make no request to the API")
        parser.add_argument("--json", action="store_true", help="one JSON object: status, and the findings")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = diagnose(with_api=not options["no_api"])
        worst = max(finding.level for finding in findings)
        if options["json"]:
            self.stdout.write(
                json.dumps({"status": worst.name.lower(), "findings": [_fields(one) for one in findings]})
            )
        else:
            self.stdout.write("\n".join(map(_words, findings)))
        if worst:
            sys.exit(worst)


def _fields(finding: Finding) -> dict[str, str]:
    return {
        "code": finding.code,
        "level": finding.level.name.lower(),
        "text": finding.text,
        "advice": finding.advice,
    }


def _words(finding: Finding) -> str:
    line = f"{SIGNS[finding.level]:>8}  {finding.text}"
    return f"{line}\n{'':>8}  -> {finding.advice}" if finding.advice else line

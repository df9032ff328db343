"""A transcript of 10,000 items goes in by import, through delivery, and comes out of the export byte for byte."""

from __future__ import annotations

import random

import pytest
from hypothesis import strategies as st

from convsessions import operations
from convsessions.models import ConversationSession, WriteIntent
from tests.fidelity.documented import KINDS, documented, examples
from tests.histories import messages
from tests.transcripts.commands import jsonl, run, run_json

ITEMS = 10_000

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def transcript(tmp_path):
    """Items of every type, each a few times, between messages that are told apart by their texts."""
    kinds = examples(st.one_of([documented(kind) for kind in KINDS]), 400)
    chance = random.Random(7)
    items = [item if chance.random() < 0.6 else chance.choice(kinds) for item in messages(ITEMS)]
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(jsonl(items))
    return path


def test_ten_thousand_items_come_out_as_they_went_in(sandbox, quick, transcript, tmp_path):
    quick |= {"REQUEST_TIMEOUT": 20.0, "DELIVERY_BUDGET": 600.0}
    out = tmp_path / "out.jsonl"

    imported = run_json("import_items", transcript, "--key", "k")
    session = ConversationSession.objects.get()
    operations.deliver(session.pk)
    exported = run_json("export_items", "--key", "k", "--out", out)

    assert (imported["items"], imported["omitted"], exported["items"]) == (ITEMS, 0, ITEMS)
    assert {write.state for write in WriteIntent.objects.all()} == {"saved"}
    assert out.read_bytes() == transcript.read_bytes()


def test_what_was_not_delivered_yet_comes_out_alike(transcript, tmp_path):
    out = tmp_path / "out.jsonl"
    run("import_items", transcript, "--key", "k")

    run("export_items", "--key", "k", "--pending", "with", "--out", out)

    assert out.read_bytes() == transcript.read_bytes()

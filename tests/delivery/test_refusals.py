"""An item that the API refuses is named, stops or is skipped as its author wished, and harms nobody else's items."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.exceptions import IdempotencyConflict, InvalidInput
from convsessions.states import RefusalPolicy, Resolution, Verdict, WriteState
from tests.histories import append_requests, deliver_until_settled, messages, remote_texts, texts

pytestmark = pytest.mark.django_db(transaction=True)

EVERYTHING = texts(messages(60))
NAMED, UNNAMED = {"honest": True}, {}


def write_of(session, *bad, count=60, policy="stop"):
    items = messages(count)
    for index in bad:
        items[index]["content"] = f"m{index} BAD"
    return operations.append_items(session.pk, items, on_refusal=policy)


def without(*indexes, count=60):
    return [text for index, text in enumerate(EVERYTHING[:count]) if index not in indexes]


def test_stop_at_a_named_item_keeps_the_requests_before_it(sandbox, session):
    sandbox.fault("fussy", text="BAD", times=None, honest=True)
    write = deliver_until_settled(write_of(session, 37))

    assert (write.state, write.items_saved) == (WriteState.REFUSED, 20)
    assert (write.error_code, write.error_param) == ("invalid_value", "items[37]")
    assert remote_texts(sandbox, session) == EVERYTHING[:20]
    assert len(append_requests(sandbox, session)) == 2


def test_stop_finds_an_item_that_is_not_named_and_stores_nothing_after_it(sandbox, session):
    sandbox.fault("fussy", text="BAD", times=None)
    write = deliver_until_settled(write_of(session, 37))

    assert (write.state, write.items_saved) == (WriteState.REFUSED, 37)
    assert (write.error_code, write.error_param) == ("invalid_value", "items[37]")
    assert remote_texts(sandbox, session) == EVERYTHING[:37]
    assert len(append_requests(sandbox, session)) <= 2 + 2 * 5


@pytest.mark.parametrize("naming", [NAMED, UNNAMED], ids=["named", "unnamed"])
@pytest.mark.parametrize(
    "bad", [(37,), (0,), (59,), (20, 21), (5, 25, 45), (0, 19, 20, 39, 40, 59)], ids=lambda bad: "-".join(map(str, bad))
)
def test_skip_saves_everything_else_in_order(sandbox, session, naming, bad):
    sandbox.fault("fussy", text="BAD", times=None, **naming)
    write = deliver_until_settled(write_of(session, *bad, policy="skip"))

    assert (write.state, write.items_saved, write.items_total) == (WriteState.SAVED, 60 - len(bad), 60)
    assert remote_texts(sandbox, session) == without(*bad)
    assert [(one["item"], one["code"]) for one in write.skipped] == [(item, "invalid_value") for item in bad]
    assert write.skipped[0]["param"] == f"items[{bad[0]}]"
    assert not operations.verify_session(session.pk)


@pytest.mark.parametrize("kind", ["lost_after", "lost_before", "error_after", "truncated"])
@pytest.mark.parametrize("skip", range(5))
def test_skip_is_exact_when_replies_get_lost_among_the_pieces(sandbox, session, kind, skip):
    sandbox.fault(kind, operation="append_items", skip=skip)
    items = messages(10)
    items[3]["unheard_of"] = items[7]["unheard_of"] = True  # the API takes no unknown fields, whatever else happens
    write = deliver_until_settled(operations.append_items(session.pk, items, on_refusal="skip"))

    assert (write.state, write.items_saved) == (WriteState.SAVED, 8)
    assert remote_texts(sandbox, session) == without(3, 7, count=10)
    assert [one["param"] for one in write.skipped] == ["items[3].unheard_of", "items[7].unheard_of"]


def test_skipping_all_of_an_append_is_a_refusal(sandbox, session):
    sandbox.fault("fussy", text="BAD", times=None, honest=True)
    write = deliver_until_settled(write_of(session, 0, 1, 2, count=3, policy="skip"))

    assert (write.state, write.items_saved) == (WriteState.REFUSED, 0)
    assert (write.error_code, write.error_param) == ("invalid_value", "items[2]")
    assert remote_texts(sandbox, session) == []


@pytest.mark.parametrize("policy", RefusalPolicy.values)
def test_a_server_that_refuses_everything_is_asked_a_bounded_number_of_times(sandbox, session, policy):
    sandbox.fault("error_before", operation="append_items", status=400, times=None)
    write = deliver_until_settled(write_of(session, policy=policy))

    assert (write.state, write.items_saved) == (WriteState.REFUSED, 0)
    assert len(append_requests(sandbox, session)) <= 13
    assert remote_texts(sandbox, session) == []


@pytest.mark.parametrize("policy", RefusalPolicy.values)
def test_a_refusal_that_names_another_parameter_is_no_item_s_fault(sandbox, session, policy):
    sandbox.fault("error_before", operation="append_items", status=400, code="unknown_parameter", param="include")
    write = deliver_until_settled(write_of(session, policy=policy))

    assert (write.state, write.error_param) == (WriteState.REFUSED, "include")
    assert len(append_requests(sandbox, session)) == 1


def test_a_request_that_is_too_large_is_sent_in_pieces(sandbox, session):
    sandbox.fault("error_before", operation="append_items", status=413, times=2)
    write = deliver_until_settled(write_of(session, count=20))

    assert (write.state, write.items_saved) == (WriteState.SAVED, 20)
    assert remote_texts(sandbox, session) == EVERYTHING[:20]


def test_later_writes_go_on_behind_a_skip(sandbox, session):
    sandbox.fault("fussy", text="BAD", times=None)
    write = write_of(session, 1, count=3, policy="skip")
    later = operations.append_items(session.pk, messages(1, prefix="later"))

    assert deliver_until_settled(later).state == WriteState.SAVED
    assert operations.get_write(write.pk).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["m0", "m2", "later0"]


def test_trying_a_refused_write_again_does_not_bring_back_what_was_skipped_before(sandbox, session):
    items = messages(60)
    items[3]["unheard_of"] = True
    sandbox.fault("error_before", operation="append_items", skip=3, status=400, code="x", param="include")
    write = deliver_until_settled(operations.append_items(session.pk, items, on_refusal="skip"))
    assert (write.state, write.items_saved) == (WriteState.REFUSED, 19)

    operations.retry_write(write.pk)
    write = deliver_until_settled(write)
    assert (write.state, write.items_saved) == (WriteState.SAVED, 59)
    assert remote_texts(sandbox, session) == without(3)


def test_another_policy_is_another_body(sandbox, session):
    operations.append_items(session.pk, messages(1), idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        operations.append_items(session.pk, messages(1), idempotency_key="k", on_refusal="skip")
    again = operations.append_items(session.pk, messages(1), idempotency_key="k2", on_refusal="skip")
    assert operations.append_items(session.pk, messages(1), idempotency_key="k2", on_refusal="skip").pk == again.pk


@pytest.mark.parametrize("policy", ["", "later", None, 1, ["skip"]])
def test_an_unknown_policy_is_refused_at_the_edge(session, policy):
    with pytest.raises(InvalidInput) as caught:
        operations.append_items(session.pk, messages(1), on_refusal=policy)
    assert caught.value.field == "on_refusal"
    assert not session.writes.exists()


def test_a_late_copy_of_a_batch_that_was_halved_meanwhile_is_found_whole(sandbox, session, quick):
    quick["RETRY_BACKOFF"] = (0.05, 5.0)
    sandbox.fault("late_apply", seconds=2.2)  # judged absent at 1.2 s
    sandbox.fault("error_before", operation="append_items", status=400)  # and halved
    sandbox.fault("rate_limited", operation="append_items", retry_after="2")  # so that the copy is there first
    write = deliver_until_settled(write_of(session, count=4))
    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, Verdict.DUPLICATED)

    operations.resolve_write(write.pk, Resolution.REMOVE_DUPLICATES, reason="a proxy was slow")
    write = deliver_until_settled(write)
    assert (write.state, write.items_saved) == (WriteState.SAVED, 4)
    assert remote_texts(sandbox, session) == EVERYTHING[:4]


def test_what_was_skipped_stays_out_when_a_refused_write_is_tried_again(sandbox, session):
    """Sent now, it would come after what followed it."""
    sandbox.fault("error_before", operation="append_items", skip=3, status=400, code="x", param="include")
    sandbox.fault("fussy", text="BAD", times=None, honest=True)
    write = deliver_until_settled(write_of(session, 3, count=25, policy="skip"))
    assert (write.state, write.items_saved) == (WriteState.REFUSED, 19)

    sandbox.clear_faults()
    operations.retry_write(write.pk)
    write = deliver_until_settled(write)

    assert (write.state, write.items_saved) == (WriteState.SAVED, 24)
    assert [skipped["item"] for skipped in write.skipped] == [3]
    assert remote_texts(sandbox, session) == without(3, count=25)

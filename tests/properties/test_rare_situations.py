"""Situations that the state machine reaches rarely, written out: the same model, the same simulated time."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.delivery import protocol
from convsessions.delivery.protocol import Ending
from convsessions.delivery.settling import MAX_READ_FAILURES, MAX_SENDS
from convsessions.journal.locking import alias
from convsessions.remote import outcomes
from convsessions.remote.calls import AppendItems, ListItems, Pause
from convsessions.states import Verdict, WriteState
from tests.histories import messages, texts

from .remote_model import Fault, RemoteModel
from .simulated_time import SimulatedTime

pytestmark = pytest.mark.django_db(transaction=True)

EXISTING = {"type": "message", "role": "user", "content": "before", "id": "msg_0"}


@pytest.fixture
def time(monkeypatch):
    simulated = SimulatedTime()
    simulated.install(monkeypatch)
    return simulated


@pytest.fixture
def remote(time, quick):
    """Holds one conversation, with one item."""
    model = RemoteModel(lambda: time.seconds, time.spend, quick["SETTLE_SECONDS"])
    model.conversations["conv_1"] = [EXISTING]
    return model


@pytest.fixture
def session(transactional_db, time):
    return operations.create_session(conversation_id="conv_1")


class Delivery:
    """One delivery: what it asked for, and its report. `faults`: by type of request, what befalls the next ones."""

    def __init__(self, session, remote, time, **faults):
        self.remote, self.time, self.faults = remote, time, faults
        self.requests = []
        self.report = None
        self.generator = protocol.deliver(session.pk, using=alias())
        self.send(None)

    def send(self, outcome):
        try:
            self.request = self.generator.send(outcome)
        except StopIteration as end:
            self.request, self.report = None, end.value

    def step(self):
        request, outcome = self.request, None
        if isinstance(request, Pause):
            self.time.spend(request.seconds)
        else:
            self.requests.append(type(request))
            coming = self.faults.get(type(request).__name__, [])
            outcome = self.remote.perform(request, coming.pop(0) if coming else Fault.NONE)
        self.send(outcome)

    def to_the_end(self):
        while self.report is None:
            self.step()
        return self


def deliver_until_settled(write, remote, time, **faults):
    while True:
        Delivery(write.session, remote, time, **faults).to_the_end()
        now = operations.get_write(write.pk)
        if now.settled or now.needs_attention:
            return now
        time.spend(max((now.next_attempt_at - time.now()).total_seconds(), 0.0))


def test_a_write_that_is_cancelled_while_its_worker_reads_leaves_the_worker_to_the_next_write(session, remote, time):
    """The author's cancel finds a live lease and rings no doorbell: its holder has to look for more work."""
    cancelled = operations.append_items(session.pk, messages(1))
    following = operations.append_items(session.pk, messages(1, prefix="next"))
    delivery = Delivery(session, remote, time)
    assert isinstance(delivery.request, ListItems)
    operations.cancel_write(cancelled.pk)

    delivery.to_the_end()

    assert delivery.report.ending is Ending.DONE
    assert operations.get_write(following.pk).state == WriteState.SAVED
    assert remote.texts("conv_1") == ["before", "next0"]


def test_a_pop_that_is_cancelled_while_its_worker_reads_pops_nothing(session, remote, time):
    cancelled = operations.pop_item(session.pk)
    delivery = Delivery(session, remote, time)
    assert isinstance(delivery.request, ListItems)
    operations.cancel_write(cancelled.pk)

    delivery.to_the_end()

    assert (delivery.report.ending, delivery.requests) == (Ending.DONE, [ListItems])
    assert remote.texts("conv_1") == ["before"]


def test_a_write_that_a_clear_supersedes_while_its_worker_reads_leaves_the_worker_to_the_clear(session, remote, time):
    operations.append_items(session.pk, messages(1))
    delivery = Delivery(session, remote, time)
    clear = operations.clear_session(session.pk)

    delivery.to_the_end()

    assert delivery.report.ending is Ending.DONE
    assert operations.get_write(clear.pk).state == WriteState.SAVED
    assert remote.conversations == {}


def test_being_told_to_wait_does_not_use_up_the_times_that_a_chunk_may_be_sent(session, remote, time):
    """A person is asked why a chunk never arrives; here it is known why."""
    write = operations.append_items(session.pk, messages(1))
    faults = [*[Fault.RATE_LIMITED] * (MAX_SENDS + 1), Fault.LOST]

    settled = deliver_until_settled(write, remote, time, AppendItems=faults)

    assert settled.state == WriteState.SAVED
    assert remote.texts("conv_1") == ["before", "m0"]


def test_a_chunk_that_never_arrives_is_sent_a_bounded_number_of_times_and_goes_to_a_person(session, remote, time):
    write = operations.append_items(session.pk, messages(1))

    ambiguous = deliver_until_settled(write, remote, time, AppendItems=[Fault.LOST] * 100)

    assert (ambiguous.state, ambiguous.error_code) == (WriteState.AMBIGUOUS, Verdict.ABSENT)
    assert ambiguous.requests.filter(operation=AppendItems.operation).count() == MAX_SENDS


@pytest.fixture
def operator(remote, monkeypatch, quick):
    """Lets operations that read the remote read the model."""
    quick["CLIENT_FACTORY"] = "builtins.str"
    monkeypatch.setattr("convsessions.delivery.drivers.perform", lambda request, client: remote.perform(request))


def test_after_an_operators_resend_it_may_be_sent_as_often_again(session, remote, time, operator):
    write = operations.append_items(session.pk, messages(1))
    deliver_until_settled(write, remote, time, AppendItems=[Fault.LOST] * MAX_SENDS)
    operations.resolve_write(write.pk, "resend", reason="the proxy was mended")

    settled = deliver_until_settled(write, remote, time, AppendItems=[Fault.LOST] * (MAX_SENDS - 1))

    assert settled.state == WriteState.SAVED
    assert remote.texts("conv_1") == ["before", "m0"]


def test_being_told_to_wait_does_not_use_up_the_times_that_the_history_may_be_unreadable(session, remote, time):
    write = operations.append_items(session.pk, messages(1))
    deliver_until = {
        "AppendItems": [*[Fault.RATE_LIMITED] * (MAX_READ_FAILURES + 1), Fault.REPLY_LOST],
        "ListItems": [Fault.NONE, Fault.ERROR_BEFORE],
    }

    settled = deliver_until_settled(write, remote, time, **deliver_until)

    assert settled.state == WriteState.SAVED
    assert remote.texts("conv_1") == ["before", "m0"]


def test_a_history_that_stays_unreadable_goes_to_a_person_at_last(session, remote, time):
    write = operations.append_items(session.pk, messages(1))
    faults = {"AppendItems": [Fault.REPLY_LOST], "ListItems": [Fault.NONE, *[Fault.ERROR_BEFORE] * 100]}

    ambiguous = deliver_until_settled(write, remote, time, **faults)

    assert (ambiguous.state, ambiguous.error_code) == (WriteState.AMBIGUOUS, Verdict.UNDECIDED)
    assert len(faults["ListItems"]) == 100 - MAX_READ_FAILURES - 1


def test_a_clear_that_is_cancelled_again_leaves_it_known_what_was_saved_before(session, remote, time):
    """The write that it superseded was in flight: its chunk is there, whoever took it for cancelled."""
    write = operations.append_items(session.pk, messages(25))
    delivery = Delivery(session, remote, time, AppendItems=[Fault.NONE, Fault.REPLY_LOST])
    while not isinstance(delivery.request, AppendItems):
        delivery.step()
    delivery.step()
    clear = operations.clear_session(session.pk)
    delivery.step()
    operations.cancel_write(clear.pk)

    delivery.to_the_end()

    superseded = operations.get_write(write.pk)
    assert (superseded.state, superseded.items_saved) == (WriteState.SAVED, 25)
    assert remote.texts("conv_1") == ["before", *texts(messages(25))]


def test_a_crash_before_a_clear_that_is_cancelled_again_leaves_it_known_what_was_saved(session, remote, time):
    write = operations.append_items(session.pk, messages(45))
    delivery = Delivery(session, remote, time)
    while not isinstance(delivery.request, AppendItems):
        delivery.step()
    remote.perform(delivery.request)
    delivery.generator.close()
    clear = operations.clear_session(session.pk)
    time.spend(60.0)
    delivery = Delivery(session, remote, time)
    operations.cancel_write(clear.pk)

    delivery.to_the_end()

    superseded = operations.get_write(write.pk)
    assert (superseded.state, superseded.items_saved) == (WriteState.CANCELLED, 20)
    assert remote.texts("conv_1") == ["before", *texts(messages(20))]


def in_flight(session, remote, time, **faults):
    """A delivery whose append was sent, and waits for its outcome."""
    delivery = Delivery(session, remote, time, **faults)
    while not isinstance(delivery.request, AppendItems):
        delivery.step()
    return delivery


def altered(outcome):
    items = [{**item, "content": "something else"} for item in outcome.items]
    return outcomes.applied({**outcome.data, "data": items}, status=200)


def test_an_altered_reply_does_not_hold_up_a_clear(session, remote, time):
    write = operations.append_items(session.pk, messages(1))
    delivery = in_flight(session, remote, time)
    clear = operations.clear_session(session.pk)
    delivery.send(altered(remote.perform(delivery.request)))

    delivery.to_the_end()

    assert operations.get_write(write.pk).state == WriteState.CANCELLED
    assert operations.get_write(clear.pk).state == WriteState.SAVED


def test_a_doubled_chunk_does_not_hold_up_a_clear(session, remote, time):
    write = operations.append_items(session.pk, messages(1))
    delivery = in_flight(session, remote, time, AppendItems=[Fault.TWICE])
    clear = operations.clear_session(session.pk)

    delivery.to_the_end()

    assert operations.get_write(write.pk).state == WriteState.CANCELLED
    assert write.reconciliations.get().verdict == Verdict.DUPLICATED
    assert operations.get_write(clear.pk).state == WriteState.SAVED


@pytest.mark.parametrize("fault", [Fault.BAD_KEY, Fault.ERROR_BEFORE])
def test_an_unreadable_history_does_not_hold_up_a_clear(session, remote, time, fault):
    write = operations.append_items(session.pk, messages(1))
    faults = {"AppendItems": [Fault.REPLY_LOST], "ListItems": [Fault.NONE, *[fault] * 100]}
    delivery = in_flight(session, remote, time, **faults)
    clear = operations.clear_session(session.pk)

    delivery.to_the_end()

    assert operations.get_write(write.pk).state == WriteState.CANCELLED
    assert operations.get_write(clear.pk).state == WriteState.SAVED


def test_a_last_look_for_copies_does_not_hold_up_a_clear(session, remote, time):
    write = operations.append_items(session.pk, messages(1))
    delivery = in_flight(session, remote, time, AppendItems=[Fault.LOST, Fault.TWICE])
    delivery.step()
    while not (isinstance(delivery.request, ListItems) and operations.get_write(write.pk).items_saved):
        assert delivery.report is None
        if isinstance(delivery.request, AppendItems):
            delivery.send(remote.perform(delivery.request))
        else:
            delivery.step()
    remote.conversations["conv_1"].append({**EXISTING, "content": "m0", "id": "msg_late"})
    clear = operations.clear_session(session.pk)

    delivery.to_the_end()

    assert operations.get_write(write.pk).state == WriteState.SAVED
    assert operations.get_write(clear.pk).state == WriteState.SAVED


def test_metadata_of_which_the_outcome_is_unknown_is_never_set_after_a_later_change(session, remote, time):
    """A request that lands late must not undo what was set meanwhile."""
    operations.update_session(session.pk, metadata={"n": "1"})
    later = operations.update_session(session.pk, metadata={"n": "2"}).write

    settled = deliver_until_settled(later, remote, time, UpdateConversation=[Fault.LATE])
    time.spend(10.0)
    remote.land()

    assert settled.state == WriteState.SAVED
    assert remote.metadata["conv_1"] == {"n": "2"}


def test_a_request_that_lands_within_the_settle_delay_is_waited_for_and_not_sent_again(session, remote, time):
    write = operations.append_items(session.pk, messages(1))

    settled = deliver_until_settled(write, remote, time, AppendItems=[Fault.LATE])

    assert settled.state == WriteState.SAVED
    assert remote.texts("conv_1") == ["before", "m0"]
    assert settled.requests.filter(operation=AppendItems.operation).count() == 1


def test_a_copy_that_lands_before_an_operators_resend_is_found_at_the_end(session, remote, time, operator):
    """The resend looks for the end of the history anew; the last look has to begin at the first anchor all the same."""
    write = operations.append_items(session.pk, messages(1))
    deliver_until_settled(write, remote, time, AppendItems=[Fault.LOST] * MAX_SENDS)
    operations.resolve_write(write.pk, "resend", reason="the proxy was mended")
    remote.conversations["conv_1"].append({**EXISTING, "content": "m0", "id": "msg_late"})

    found = deliver_until_settled(write, remote, time)

    assert remote.texts("conv_1") == ["before", "m0"] or found.error_code == Verdict.DUPLICATED


def test_a_read_that_fails_once_before_a_clear_is_tried_again(session, remote, time):
    write = operations.append_items(session.pk, messages(1))
    faults = {"AppendItems": [Fault.REPLY_LOST], "ListItems": [Fault.NONE, Fault.ERROR_BEFORE]}
    delivery = in_flight(session, remote, time, **faults)
    operations.clear_session(session.pk)

    delivery.to_the_end()

    assert operations.get_write(write.pk).state == WriteState.SAVED

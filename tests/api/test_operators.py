"""Reconciling and resolving, with reasons and on evidence that still holds."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.delivery import drivers
from convsessions.models import Reconciliation
from convsessions.remote.calls import DeleteItem

from .conftest import code_of, message, texts
from .test_waiting import worker

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_evidence_shows_what_can_be_done_and_no_content(operator, duplicated, sandbox):
    response = operator.get(f"/api/writes/{duplicated.pk}/resolve/")

    body = response.json()
    ids = [item["id"] for item in sandbox.items(duplicated.session.conversation_id)]
    assert (response.status_code, body["verdict"]) == (200, "duplicated")
    assert body["resolutions"] == ["remove_duplicates", "accept", "recheck", "rollback", "abandon"]
    assert body["findings"]["runs"] == [[ids[3]], [ids[4]]]
    assert len(body["evidence"]) == 64
    assert "secret" not in response.content.decode()


def test_a_resolution_is_carried_out_and_leaves_its_reason(operator, ambiguous):
    path = f"/api/writes/{ambiguous.pk}/resolve/"
    evidence = operator.get(path).json()["evidence"]

    response = operator.post(
        path, {"resolution": "abandon", "reason": "asked the author", "evidence": evidence}, format="json"
    )

    row = Reconciliation.objects.latest("pk")
    assert (response.status_code, response.json()["state"]) == (200, "cancelled")
    assert (row.resolution, row.reason, row.actor) == ("abandon", "asked the author", operator.user)


def test_a_resolution_that_takes_work_answers_202(operator, duplicated, sandbox):
    path = f"/api/writes/{duplicated.pk}/resolve/"
    evidence = operator.get(path).json()["evidence"]

    fields = {"resolution": "remove_duplicates", "reason": "a proxy sent it twice", "evidence": evidence}
    response = operator.post(path, fields, format="json")
    operations.deliver(duplicated.session_id)

    assert response.status_code == 202
    assert operator.get(response["Location"]).json()["state"] == "saved"
    assert texts(sandbox.items(duplicated.session.conversation_id)) == ["1", "2", "3", "secret"]


def test_only_staff_read_the_reasons(operator, owner, ambiguous):
    operator.post(f"/api/writes/{ambiguous.pk}/reconcile/", {"reason": "look again"}, format="json")

    path = f"/api/writes/{ambiguous.pk}/"
    to_staff, to_owner = (client.get(path).json()["reconciliations"] for client in (operator, owner))

    assert [row["reason"] for row in to_staff] == ["", "look again"]
    assert [set(row) for row in to_owner] == [{"verdict", "resolution", "created_at"}] * 2
    assert [row["resolution"] for row in to_owner] == ["", "recheck"]


def test_a_reconciliation_is_done_by_a_worker(operator, ambiguous):
    response = operator.post(f"/api/writes/{ambiguous.pk}/reconcile/", {"reason": "look again"}, format="json")

    assert (response.status_code, response.json()["state"]) == (202, "sending")


def test_evidence_that_does_not_hold_any_more_is_refused(operator, ambiguous, sandbox):
    path = f"/api/writes/{ambiguous.pk}/resolve/"
    evidence = operator.get(path).json()["evidence"]
    ambiguous.session.refresh_from_db()
    sandbox.append_foreign(ambiguous.session.conversation_id, [message("secret")])

    response = operator.post(path, {"resolution": "resend", "reason": "r", "evidence": evidence}, format="json")

    assert code_of(response) == (409, "evidence_changed")


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"reason": None}, "required", "reason"),
        ({"reason": " "}, "required", "reason"),
        ({"reason": 3}, "required", "reason"),
        ({"evidence": None}, "required", "evidence"),
        ({"resolution": None}, "required", "resolution"),
        ({"resolution": "ignore"}, "invalid", "resolution"),
        ({"resolution": "remove_duplicates"}, "invalid", "resolution"),
        ({"force": True}, "unknown_field", "force"),
    ],
)
def test_a_resolution_needs_all_its_fields(operator, ambiguous, change, code, field):
    path = f"/api/writes/{ambiguous.pk}/resolve/"
    fields = {"resolution": "abandon", "reason": "r", "evidence": operator.get(path).json()["evidence"]}

    response = operator.post(path, {**fields, **change}, format="json")

    assert code_of(response) == (422, code)
    assert response.json()["field"] == field
    ambiguous.refresh_from_db()
    assert ambiguous.state == "ambiguous"


@pytest.mark.parametrize("verb", ["reconcile", "resolve"])
def test_a_write_that_is_not_ambiguous_cannot_be_operated_on(operator, session, verb):
    write = operations.append_items(session.pk, [message()])
    fields = {"reason": "r"} if verb == "reconcile" else {"reason": "r", "resolution": "abandon", "evidence": "e"}

    assert code_of(operator.post(f"/api/writes/{write.pk}/{verb}/", fields, format="json")) == (409, "illegal_move")


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ({"kind": "read_error"}, (502, "upstream_failed")),
        ({"kind": "error_before", "status": 503}, (503, "upstream_unavailable")),
        ({"kind": "hang_before", "seconds": 2.0}, (504, "upstream_timeout")),
    ],
    ids=str,
)
def test_evidence_that_cannot_be_read_is_a_gateway_error(operator, ambiguous, sandbox, fault, problem):
    path = f"/api/writes/{ambiguous.pk}/resolve/"
    fields = {"resolution": "accept", "reason": "r", "evidence": operator.get(path).json()["evidence"]}
    sandbox.fault(operation="list_items", times=None, **fault)

    assert code_of(operator.get(path)) == problem
    assert code_of(operator.post(path, fields, format="json")) == problem
    ambiguous.refresh_from_db()
    assert ambiguous.state == "ambiguous"


def test_the_evidence_on_a_write_that_is_not_ambiguous_is_not_read(operator, session):
    write = operations.append_items(session.pk, [message()])

    assert code_of(operator.get(f"/api/writes/{write.pk}/resolve/")) == (409, "illegal_move")


def test_a_resolution_can_be_waited_for(operator, ambiguous):
    path = f"/api/writes/{ambiguous.pk}/resolve/"
    fields = {"resolution": "accept", "reason": "r", "evidence": operator.get(path).json()["evidence"]}

    with worker(ambiguous.session_id):
        response = operator.post(path, fields, format="json", headers={"Prefer": "wait=10"})

    assert (response.status_code, response.json()["state"]) == (201, "saved")


def test_a_reconciliation_can_be_waited_for(operator, duplicated, sandbox):
    conversation_id = duplicated.session.conversation_id
    extra = sandbox.items(conversation_id)[-1]["id"]
    drivers.read(
        duplicated.session,
        lambda not_after: DeleteItem(conversation_id=conversation_id, item_id=extra, not_after=not_after),
    )

    with worker(duplicated.session_id):
        response = operator.post(
            f"/api/writes/{duplicated.pk}/reconcile/", {"reason": "the copy is gone"}, format="json",
            headers={"Prefer": "wait=10"},
        )  # fmt: skip

    assert (response.status_code, response.json()["state"]) == (201, "saved")

"""Approve and reject depositions, and withdraw records."""

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.records.depositions.events import publish_about
from tailrace.domains.records.depositions.submit import Draft, submit
from tailrace.domains.records.event_types import DepositionApproved, DepositionRejected
from tailrace.domains.records.models import Deposition, Record
from tailrace.jobs.runtime import audit

CURATE = "tailrace_records.curate_deposition"
MAX_REASON = 2000
State = Deposition.State


class DecisionRefused(Exception):
    """The state of the deposition or record does not allow the action, or its reason is invalid."""


def approve(id: int, by: User) -> Deposition:
    """Approve a valid deposition. Raises DecisionRefused if it is in another state."""
    with transaction.atomic():
        row = _decide(id, State.APPROVED, "")
        publish_about(DepositionApproved, [id], actor=by.get_username())
        audit.record(by, Deposition, "approved", [(id, str(row))])
    return row


def reject(id: int, by: User, reason: str) -> Deposition:
    """Reject a valid deposition. Raises DecisionRefused if it is in another state or the reason is
    empty."""
    with transaction.atomic():
        row = _decide(id, State.REJECTED, _checked_reason(reason))
        extra = {id: {"reason": row.reason}}
        publish_about(DepositionRejected, [id], extra=extra, actor=by.get_username())
        audit.record(by, Deposition, "rejected", [(id, str(row))])
    return row


def withdraw(record: Record, by: User, reason: str) -> Deposition:
    """Submit a deposition that withdraws the record from all indexes. Raises DecisionRefused.

    The caller checks that `by` owns the record or is a curator.
    """
    with transaction.atomic():
        row = Record.objects.select_for_update().get(pk=record.pk)
        if row.is_deleted:
            raise DecisionRefused("the record is withdrawn already")
        source = row.deposition.source_id if row.deposition else None
        if source is not None:
            raise DecisionRefused("the record was harvested: only its source can withdraw it")
        draft = Draft(
            identifier=row.identifier,
            datestamp=database_now(),
            submitted_by_id=row.owner_id or by.pk,
            is_deleted=True,
            reason=_checked_reason(reason),
        )
        [id] = submit([draft])
        audit.record(by, Record, "withdrawn", [(row.pk, f"record {row.pk}")])
    return Deposition.objects.get(pk=id)


def may_withdraw(user: User, record: Record) -> bool:
    return record.owner_id == user.pk or user.has_perm(CURATE)


def _decide(id: int, state: str, reason: str) -> Deposition:
    changed = Deposition.objects.filter(pk=id, state=State.VALID).update(state=state, reason=reason)
    row = Deposition.objects.get(pk=id)
    if not changed:
        raise DecisionRefused(
            f"the deposition is {row.state}: only a valid one can be approved or rejected"
        )
    return row


def _checked_reason(reason: str) -> str:
    reason = " ".join(reason.split())
    if not reason:
        raise DecisionRefused("a reason is required")
    if len(reason) > MAX_REASON:
        raise DecisionRefused(
            f"the reason has {len(reason)} characters; at most {MAX_REASON} are allowed"
        )
    return reason

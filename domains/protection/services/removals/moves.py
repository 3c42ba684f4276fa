"""The only writer of a removal request's state. Each move is one guarded UPDATE, with its history.

A move fails if the request has changed since it was read: it has to have the same state and the
same job. The job of the next step is enqueued in the same transaction.
"""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.protection.alerts.findings import Finding
from tailrace.domains.protection.alerts.raising import raise_alerts
from tailrace.domains.protection.models import RemovalChange, RemovalRequest, RemovalState, Severity
from tailrace.domains.protection.models.removal import ENDED, MOVES, RemovalStep
from tailrace.domains.protection.services.removals.brokers import (
    Confirmation,
    Method,
    find_broker,
    name_of,
)
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.operations.cancel import cancel
from tailrace.net.encryption import encrypt

QUEUE = "protection.removebrokers_process"
MAIL_QUEUE = "protection.removal_mails"
FIRST_CHECK = timedelta(hours=72)
CHECK_AGAIN = timedelta(days=10)
MOST_CHECKS = 6
"""Checks without a removal, over 53 days, after which a request is parked."""
STILL_LISTED = "the person is still listed"
FROM_PEOPLE = "this broker accepts requests from people only"
ALERTS = {
    RemovalState.NEEDS_PERSON: ("removal_needs_person", Severity.WARNING),
    RemovalState.REMOVED: ("removal_done", Severity.INFO),
    RemovalState.REJECTED: ("removal_rejected", Severity.WARNING),
}
"""The alert for the user when a request enters a state."""
OPEN_LINK = ("removal_open_link", Severity.WARNING)
REAPPEARED = ("removal_reappeared", Severity.WARNING)


class MovedOn(Exception):
    """The request has changed since it was read; nothing was written."""


def start(row: RemovalRequest, by: User) -> None:
    """Record the start of a new request; enqueue its job, or leave it to a person."""
    with transaction.atomic():
        _record(row, "", row.state, by, "started")
        if is_manual(row):
            park(row, FROM_PEOPLE)
        else:
            _change(row, **_enqueue_next(row, RemovalStep.SUBMIT))


def submitted(
    row: RemovalRequest, *, confirm_url: str = "", by: User | None = None, note: str = ""
) -> None:
    """Record that the broker has the request.

    The next step follows the confirmation link, if there is one, or checks the listing after 72
    hours.
    """
    now = database_now()
    broker = find_broker(row.broker)
    with transaction.atomic():
        changes: dict[str, Any] = {"submitted_at": now, "checks": 0, "confirm_url": ""}
        if confirm_url:
            changes["confirm_url"] = encrypt(confirm_url)
            changes |= _enqueue_next(row, RemovalStep.CONFIRM, now)
        else:
            changes |= _enqueue_next(row, RemovalStep.VERIFY, now + FIRST_CHECK)
        alert = OPEN_LINK if broker.confirmation is Confirmation.MAIL else None
        move(row, RemovalState.SUBMITTED, by=by, note=note, alert=alert, **changes)
        if broker.confirmation is Confirmation.NONE and broker.method is Method.FORM:
            confirmed(row)  # the page after the form confirms it


def is_manual(row: RemovalRequest) -> bool:
    return find_broker(row.broker).method is Method.MANUAL


def confirmed(row: RemovalRequest, *, by: User | None = None, note: str = "") -> None:
    """Record that the request is confirmed. From now on only the broker's listing is checked."""
    due_at = max((row.submitted_at or database_now()) + FIRST_CHECK, database_now())
    with transaction.atomic():
        columns = _enqueue_next(row, RemovalStep.VERIFY, due_at)
        move(row, RemovalState.AWAITING, by=by, note=note, confirm_url="", **columns)


def not_listed(row: RemovalRequest, *, by: User | None = None, note: str = "") -> None:
    """Record that the person is not listed, so the request is fulfilled. The listing is checked
    again after CHECK_AGAIN."""
    now = database_now()
    with transaction.atomic():
        columns = _enqueue_next(row, RemovalStep.VERIFY, now + CHECK_AGAIN)
        changes = {"checks": 0, "checked_at": now, "confirm_url": "", **columns}
        if row.state == RemovalState.REMOVED:
            _change(row, **changes)
        else:
            move(row, RemovalState.REMOVED, by=by, note=note, **changes)


def still_listed(row: RemovalRequest, *, unclear: str = "") -> None:
    """Record that the person is listed, or that the check was unclear (`unclear`: the reason).

    The listing is checked again, up to MOST_CHECKS times. A person who was removed and is listed
    again is submitted again.
    """
    now = database_now()
    if row.state == RemovalState.REMOVED and not unclear:
        _reopen(row, "listed again", alert=REAPPEARED)
        return
    changes: dict[str, Any] = {"checks": row.checks + 1, "checked_at": now}
    if row.checks + 1 >= MOST_CHECKS and row.state != RemovalState.REMOVED:
        why = f"the listing could not be checked: {unclear}" if unclear else STILL_LISTED
        park(row, f"after {MOST_CHECKS} checks, {why}", **changes)
        return
    note = unclear or "still listed"
    with transaction.atomic():
        changes |= _enqueue_next(row, RemovalStep.VERIFY, now + CHECK_AGAIN)
        if row.state == RemovalState.SUBMITTED:
            move(row, RemovalState.AWAITING, note=note, **changes)
        else:
            _change(row, note=note, **changes)


def park(row: RemovalRequest, note: str, **changes: Any) -> None:
    """Leave the current step to a person."""
    with transaction.atomic():
        move(row, RemovalState.NEEDS_PERSON, note=note, **_cancel_next(row), **changes)


def try_again(row: RemovalRequest, by: User) -> None:
    """Enqueue the step of a parked request, or start a rejected request again."""
    if row.step == RemovalStep.VERIFY and row.state == RemovalState.NEEDS_PERSON:
        with transaction.atomic():
            columns = _enqueue_next(row, RemovalStep.VERIFY)
            move(row, RemovalState.AWAITING, by=by, note="tried again", checks=0, **columns)
    else:
        _reopen(row, "tried again", by)


def reject(row: RemovalRequest, by: User) -> None:
    with transaction.atomic():
        changes = {"note": "the broker refused", **_cancel_next(row)}
        move(row, RemovalState.REJECTED, by=by, **changes)


def withdraw(row: RemovalRequest, by: User) -> None:
    """End the request and delete the person's data in it."""
    with transaction.atomic():
        changes = {"person": "", "confirm_url": "", **_cancel_next(row)}
        move(row, RemovalState.WITHDRAWN, by=by, **changes)


def enqueue_again(row: RemovalRequest) -> None:
    """Enqueue the lost job of the current step again."""
    with transaction.atomic():
        _change(row, **_enqueue_next(row, RemovalStep(row.step)))


def happened_after_end(row: RemovalRequest, note: str) -> None:
    """Record in the history that a step was done although the request has ended."""
    ended = RemovalRequest.objects.filter(pk=row.pk, state__in=ENDED).first()
    if ended is not None:
        _record(ended, ended.state, ended.state, None, note)


def move(
    row: RemovalRequest,
    to: RemovalState,
    *,
    by: User | None = None,
    note: str = "",
    alert: tuple[str, Severity] | None = None,
    **changes: Any,
) -> None:
    """Change the state of the request, in the caller's transaction or one of its own, and raise the
    alert, or the alert of the state.

    Raises MovedOn if the request has changed since it was read, or if the move is not legal.
    """
    old = row.state
    if to not in MOVES[old]:
        raise MovedOn(f"{row} is {RemovalState(old).label}: it cannot become {to.label}")
    with transaction.atomic():
        _change(row, state=to, note=note, changed_at=database_now(), **changes)
        change = _record(row, old, to, by, note)
        if alert := alert or ALERTS.get(to):
            kind, severity = alert
            source, details = f"removal:{row.pk}", {"broker": name_of(row.broker)}
            raise_alerts([Finding(row.user_id, kind, source, severity, details, (change.pk,))])


def _change(row: RemovalRequest, **changes: Any) -> None:
    """Update the columns if the request has not changed since it was read. Raises MovedOn."""
    unchanged = RemovalRequest.objects.filter(pk=row.pk, state=row.state, job_id=row.job_id)
    if not unchanged.update(**changes):
        raise MovedOn(f"{row} is not {RemovalState(row.state).label} any more")
    for name, value in changes.items():
        setattr(row, name, value)


def _reopen(
    row: RemovalRequest,
    note: str,
    by: User | None = None,
    alert: tuple[str, Severity] | None = None,
) -> None:
    submission = row.submission + (row.submitted_at is not None)
    changes: dict[str, Any] = {"submission": submission, "submitted_at": None}
    changes |= {"checks": 0, "confirm_url": ""}
    with transaction.atomic():
        if is_manual(row):
            changes |= {"step": RemovalStep.SUBMIT, **_cancel_next(row)}
        else:
            changes |= _enqueue_next(row, RemovalStep.SUBMIT)
        move(row, RemovalState.PENDING, by=by, note=note, alert=alert, **changes)
        if is_manual(row):
            park(row, FROM_PEOPLE)


def _enqueue_next(
    row: RemovalRequest, step: RemovalStep, due_at: datetime | None = None
) -> dict[str, Any]:
    """Enqueue the job of the next step; return the columns to change."""
    due_at = due_at or database_now()
    by_mail = step is RemovalStep.SUBMIT and find_broker(row.broker).method is Method.MAIL
    job_id = enqueue(
        MAIL_QUEUE if by_mail else QUEUE,
        {"request": row.pk, "step": step},
        lane=lane_of(row.broker),
        unique_key=f"{row.pk}/{step}",
        due_at=due_at,
    )
    return {"step": step, "job_id": job_id, "next_at": due_at}


def _cancel_next(row: RemovalRequest) -> dict[str, Any]:
    """Cancel the job of the next step unless it is running; return the columns to change."""
    if row.job_id is not None:
        cancel([row.job_id], reason="its removal request has moved on", running=False)
    return {"job_id": None, "next_at": None}


def lane_of(broker: str) -> str:
    """Return the lane of the broker's jobs, which is also their destination."""
    return f"broker:{broker}"


def _record(row: RemovalRequest, old: str, new: str, by: User | None, note: str) -> RemovalChange:
    return RemovalChange.objects.create(
        request_id=row.pk, at=database_now(), old_state=old, new_state=new, by=by, note=note
    )

"""ledger: a row for each try to deliver to an endpoint, and what the tries say of its health."""

from collections.abc import Mapping, Sequence

from events import clock
from jobs.claimed import Completed
from jobs.outcomes import Cancel, Retry, Snooze
from subscriptions import courier, endpoints
from subscriptions.courier import Parcel, Share
from subscriptions.models import Delivery, Endpoint
from subscriptions.sending import Reply

GONE = 410
Outcome = Delivery.Outcome
Tries = Sequence[tuple[Parcel, Reply]]


def record(shares: Mapping[int, Share]) -> None:
    """Write down the tries of a batch, by endpoint, once its jobs have their outcomes.

    Endpoints that are gone, or have failed for too long, are disabled, and their jobs cancelled.
    Call it in a transaction: it locks the endpoints, so that none is deleted meanwhile.
    """
    locked = Endpoint.objects.select_for_update(no_key=True).order_by("pk")
    there = [endpoint.pk for endpoint in locked.filter(pk__in=shares)]
    tries = {id: shares[id].tried for id in there}
    for id, reason in _given_up(tries).items():
        endpoints.disable_for(id, reason)
        for parcel in shares[id].parcels:
            if not isinstance(parcel.job.outcome, Completed):
                parcel.job.outcome = Cancel(f"the endpoint is disabled: {reason}")
    Delivery.objects.bulk_create(_row(id, *one) for id, those in tries.items() for one in those)


def _given_up(tries: Mapping[int, Tries]) -> dict[int, str]:
    """Return the endpoints that are to be disabled now, and why."""
    gone = {id for id, those in tries.items() if any(_is_gone(reply) for _one, reply in those)}
    well = {id for id, those in tries.items() if any(_is_sent(one) for one, _reply in those)}
    failing = {id for id, those in tries.items() if any(_has_failed(*one) for one in those)}
    too_long = endpoints.heard_from(well - gone, failing - well - gone)
    days = f"it has failed for {endpoints.FAILING_DAYS} days"
    return dict.fromkeys(gone, "it answered 410 Gone") | dict.fromkeys(too_long, days)


def _is_gone(reply: Reply) -> bool:
    return reply.arrived and reply.status == GONE


def _is_sent(parcel: Parcel) -> bool:
    return isinstance(parcel.job.outcome, Completed)


def _has_failed(parcel: Parcel, reply: Reply) -> bool:
    return not _is_sent(parcel) and not reply.cut


def _row(id: int, parcel: Parcel, reply: Reply) -> Delivery:
    job, outcome = parcel.job, _outcome(parcel, reply)
    return Delivery(
        endpoint_id=id,
        job_id=job.id,
        event_id=job.event.id if job.event else None,
        message_id=parcel.request.headers["webhook-id"],
        attempt=job.attempt,
        at=clock.now(),
        milliseconds=reply.milliseconds,
        status=reply.status,
        outcome=outcome,
        error="" if outcome == Outcome.OK else reply.error or courier.usual(reply).reason,
        answer=reply.text,
    )


def _outcome(parcel: Parcel, reply: Reply) -> Delivery.Outcome:
    said = parcel.job.outcome
    if _is_gone(reply):
        return Outcome.GONE
    if isinstance(said, Completed):
        return Outcome.OK
    again = isinstance(said, Retry) and parcel.job.attempt < parcel.job.max_attempts
    return Outcome.RETRY if again or isinstance(said, Snooze) else Outcome.FAILED

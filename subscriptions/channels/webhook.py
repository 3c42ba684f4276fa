from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import uniform
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from events.publish import Recorded
from jobs import breaker, bucket
from jobs.claimed import ClaimedJob
from jobs.destination import Fate, left_alone
from jobs.handler import Backoff, Handler
from jobs.models import Job
from jobs.outcomes import Cancel
from subscriptions import courier, endpoints, ledger
from subscriptions.channels import base
from subscriptions.channels.base import Channel
from subscriptions.courier import Parcel, Share
from subscriptions.models import Endpoint
from subscriptions.recipients import still_told
from subscriptions.sealing import Unreadable
from subscriptions.webhooks import body_of, message_id, request_to

if TYPE_CHECKING:
    from subscriptions.audience import Heard

FEW = 3
"""Tries of what an endpoint answered with another 4xx: it rarely changes its mind."""
HELD, HELD_LONGEST = 300.0, 86_400.0
"""Seconds until a held job is looked at again: doubled each time. Resuming makes it due at once."""
BACKLOG = 2000
"""Waiting jobs of an endpoint that are counted, at most."""


class Webhook(Channel):
    """POST an event to one endpoint of a user, signed."""

    name = endpoints.QUEUE
    key = "webhook"
    offered_like = "web"
    reaches_user = (
        "EXISTS (SELECT FROM subscriptions_endpoint w WHERE w.user_id = u.id"
        " AND w.state <> 'disabled')"
    )
    lacking = "no webhook endpoint"
    fair = True
    batch_size = 50
    # Over three days, as Standard Webhooks recommends; an endpoint that is away costs none of them.
    max_attempts = 10
    backoff = Backoff(5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
    claim_timeout = 60
    time_limit = 120

    @classmethod
    def deliveries(cls, heard: "Iterable[Heard]") -> "Iterator[base.Delivery]":
        """One job per endpoint of each recipient, in a lane of its own."""
        heard = list(heard)
        found: dict[int | None, list[int]] = defaultdict(list)
        theirs = Endpoint.objects.filter(user__in={one.user_id for one in heard})
        for user, id in theirs.exclude(state="disabled").values_list("user_id", "id"):
            found[user].append(id)
        for one in heard:
            for id in found[one.user_id]:
                lane = endpoints.lane_of(id)
                yield base.Delivery(one, f"{one.recipient}:{lane}", lane)

    handle = Handler.handle  # not one by one: see handle_batch

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        shares = dict(_shares(_letters(jobs)))
        courier.carry(self.name, list(shares.values()))
        for id, share in shares.items():
            _settle(id, share)
        with transaction.atomic():
            ledger.record(shares)


@dataclass(frozen=True, slots=True)
class _Letter:
    """A job that may go out now."""

    endpoint: Endpoint
    job: ClaimedJob
    event: Recorded
    role: str

    def parcel(self) -> Parcel:
        id = message_id(self.job.id, self.event)
        return Parcel(self.job, request_to(self.endpoint, id, body_of(self.event, self.role)))


def _letters(jobs: Sequence[ClaimedJob]) -> Iterator[_Letter]:
    """Yield what may go out now; the jobs that may not are settled here."""
    told = list(still_told(jobs))
    found = Endpoint.objects.in_bulk({one.place for one in told})
    for one in told:
        endpoint = found.get(one.place)
        if endpoint is None or endpoint.user_id != one.user.pk:
            one.job.outcome = Cancel("the endpoint is deleted")
        elif endpoint.state == Endpoint.State.DISABLED:
            one.job.outcome = Cancel(f"the endpoint is disabled: {endpoint.reason}")
        elif endpoint.state == Endpoint.State.PAUSED:
            longer = 2 ** min(one.job.claim_no - 1, 10)
            one.job.snooze(f"held: {endpoint.reason}", seconds=min(HELD * longer, HELD_LONGEST))
        else:
            yield _Letter(endpoint, one.job, one.event, one.role)


def _shares(letters: Iterable[_Letter]) -> Iterator[tuple[int, Share]]:
    """Yield what each endpoint gets now; what breaker or bucket do not let through waits."""
    by_endpoint: dict[int, list[_Letter]] = defaultdict(list)
    for letter in letters:
        by_endpoint[letter.endpoint.pk].append(letter)
    gates = courier.gates(map(endpoints.breaker_of, by_endpoint))
    for id, those in by_endpoint.items():
        share = Share(endpoints.breaker_of(id), gates[endpoints.breaker_of(id)], courier.usual)
        jobs = [letter.job for letter in those]
        if share.gate.wait:
            left_alone(jobs, "its endpoint is left alone for a while", share.gate.wait)
            continue
        may_go = _within_rate(share.name, jobs)
        try:
            share.parcels = [letter.parcel() for letter in those if letter.job in may_go]
        except Unreadable as error:
            words = f"its secret cannot be read: {error}"
            left_alone(jobs, words, breaker.failed(share.name, words, at_once=True))
            continue
        if share.parcels:
            yield id, share


def _within_rate(name: str, jobs: Sequence[ClaimedJob]) -> set[ClaimedJob]:
    """Return the jobs that the endpoint's bucket has tokens for; the others come back some time
    in the span that its backlog takes."""
    rate = float(settings.WEBHOOK_PER_SECOND)
    for place, job in enumerate(jobs):
        if wait := bucket.take(name, rate, rate):
            waiting = Job.objects.pending().filter(handler=endpoints.QUEUE, lane=job.lane)
            backlog = len(jobs) - place + len(waiting.values_list("id")[:BACKLOG])
            for late in jobs[place:]:
                seconds = wait + uniform(0, backlog / rate)  # noqa: S311
                late.snooze(f"its endpoint gets {rate:g} per second", seconds=seconds)
            return set(jobs[:place])
    return set(jobs)


def _settle(id: int, share: Share) -> None:
    """Say of each job of an endpoint how it ended; what it refused is tried a few times more."""
    verdicts = courier.settle(endpoints.QUEUE, share, endpoints.lane_of(id))
    for parcel, verdict in zip(share.parcels, verdicts, strict=True):
        redirected = parcel.reply and 300 <= (parcel.reply.status or 0) < 400
        if verdict.fate is Fate.REFUSED and not redirected and parcel.job.attempt < FEW:
            parcel.job.retry(verdict.reason)

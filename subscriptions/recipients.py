"""recipients: whether those whom jobs are for are still to be told, asked for a batch at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from events.publish import Recorded
from jobs.claimed import ClaimedJob
from subscriptions.models import Notification
from subscriptions.readable import may_read


@dataclass(frozen=True, slots=True)
class Told:
    """A job that may go out: what to tell whom, and why. `place` is where, for this channel:
    the number behind `user:ID:endpoint:` or `user:ID:device:`."""

    job: ClaimedJob
    event: Recorded
    user: User
    role: str
    place: int


def still_told(jobs: Sequence[ClaimedJob]) -> Iterator[Told]:
    """Yield those that may go out to their user; the others are settled here."""
    wanted = {job: addressed(job.routing_key) for job in jobs}
    told = _notifications(jobs, {user for user, _place in wanted.values()})
    for job, (user, place) in wanted.items():
        event = job.event
        found = told.get((event.id, user)) if event else None
        if event is None:
            job.fail("the event is gone")
        elif not user:
            job.fail(f"{job.routing_key!r} names no recipient, as user:ID does")
        elif found is None or found.user is None:
            job.skip("the recipient is gone")
        elif not found.user.is_active:
            job.skip("the recipient is not active any more")
        elif event.id not in may_read(found.user, [event]):
            job.skip("the recipient may not read of it any more")
        else:
            yield Told(job, event, found.user, found.role, place)


def addressed(routing_key: str) -> tuple[int, int]:
    """Return the ids of the user and of the place that a routing key names; zeros if none."""
    match routing_key.split(":"):
        case ["user", user] if user.isdigit():
            return int(user), 0
        case ["user", user, _kind, place] if user.isdigit() and place.isdigit():
            return int(user), int(place)
    return 0, 0


def _notifications(
    jobs: Sequence[ClaimedJob], users: set[int]
) -> dict[tuple[int, int], Notification]:
    events = {job.event.id for job in jobs if job.event}
    told = Notification.objects.filter(event__in=events, user__in=users).select_related("user")
    return {(one.event_id, one.user_id): one for one in told if one.user_id is not None}

"""The messages about an event that each channel sent to a user, by the records of jobs and
digests."""

from collections.abc import Iterator

from django.contrib.auth.models import User
from django.db.models import Q

from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import State
from tailrace.subscriptions.types.channel import Sent, all_channels
from tailrace.subscriptions.types.recipient import RecipientKey

STATES = {
    State.COMPLETED: "sent",
    State.FAILED: "failed",
    State.SKIPPED: "not sent",
    State.CANCELLED: "not sent",
}
"""The states of Sent by the states of jobs. All other jobs are waiting."""


def sent_by_channel(event_id: int, user: User) -> dict[str, Sent]:
    """Return the record of each channel for the user, or for a group of the user. A channel that
    has none is missing: it sent nothing, or its jobs are deleted by now (JOBS_RETENTION_DAYS)."""
    groups = user.groups.values_list("pk", flat=True)
    keys = [RecipientKey(user_id=user.pk), *(RecipientKey(group_id=pk) for pk in groups)]
    records = list(_of_jobs(event_id, keys))
    for key, channel in all_channels().items():
        records += [(key, sent) for sent in channel.sent_without_job(event_id, keys)]
    # A user with several browsers or endpoints got the event if one of them got it.
    records.sort(key=lambda record: Sent.STATES.index(record[1].state), reverse=True)
    return dict(records)


def _of_jobs(event_id: int, keys: list[RecipientKey]) -> Iterator[tuple[str, Sent]]:
    """Yield the channel and the result of each job that sends the event to these recipients."""
    channels = {channel.name: key for key, channel in all_channels().items()}
    recipients = Q(routing_key__in=map(str, keys)) | Q(routing_key__startswith=f"{keys[0]}:")
    jobs = Job.objects.filter(recipients, event_id=event_id, handler__in=channels)
    for job in jobs.only("handler", "state", "error", "due_at", "finished_at"):
        state = STATES.get(State(job.state), "waiting")
        how = job.error if state == "not sent" else ""
        at = job.due_at if state == "waiting" else job.finished_at
        yield channels[job.handler], Sent(state, how or "", at)

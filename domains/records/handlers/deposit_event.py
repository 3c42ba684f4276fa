"""Make public events of other domains searchable, by depositing them as records."""

from collections.abc import Sequence

from tailrace.domains.records.depositions.submit import Draft, identifier_of_subject, submit
from tailrace.events.publish import Recorded
from tailrace.jobs.destinations.hidden import public_jobs
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.subscriptions.notifications.rendering.event_text import render_event

ENDED = {"photos.gathering_dissolved"}
"""Types of events that withdraw the record of their subject."""


class DepositEvent(Handler):
    """Submit an event of another domain as the record of its subject, such as `gathering/7`.

    The record is open, so only events that everybody may read are submitted.
    """

    name = "records.deposit_event"
    on = ["photos.gathering_started", "photos.gathering_finalized", "photos.gathering_dissolved"]
    batch_size = 100
    backfill = 10 * 365 * 86_400.0
    """Seconds; longer than events are kept, so that events from before the installation of records
    are submitted, too."""

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        for job in public_jobs(jobs):
            event = job.require_event()
            if not event.subject:
                job.skip("its event has no subject")
            elif not submit([_draft(event)], cause_id=event.id):
                job.skip("the event is already submitted")


def _draft(event: Recorded) -> Draft:
    is_ended = event.type in ENDED
    text = render_event(event)
    domain, kind = event.type.partition(".")[0], event.subject.partition("/")[0]
    return Draft(
        identifier=identifier_of_subject(event.subject),
        datestamp=event.recorded_at,
        metadata={}
        if is_ended
        else {
            "title": text.title[:1000],
            "description": f"{text.text[:10_000]}\n\n{text.link}".strip(),
            "creators": [domain],
            "keywords": [kind],
            "language": "en",
        },
        is_deleted=is_ended,
        reason=text.title[:1000] if is_ended else "",
    )

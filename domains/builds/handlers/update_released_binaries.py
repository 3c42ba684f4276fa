"""Store the binaries of a repository's release, from its packtrack payload."""

from dataclasses import asdict
from typing import Any

import structlog
from django.conf import settings

from tailrace.domains.builds.backends.client import BackendError, NotFound, Refused, outcome_of
from tailrace.domains.builds.backends.metadata import InvalidName, MetadataClient
from tailrace.domains.builds.backends.origin import reporter_of
from tailrace.domains.builds.backends.releases import release
from tailrace.domains.builds.event_types.build import Packtrack
from tailrace.events.publish import Recorded
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Skip

log = structlog.get_logger(__name__)


class UpdateReleasedBinaries(Handler):
    """Compare the packtrack payload with the repository's stored binaries, and store the changes.

    If the log has no other reader that needs the payload (OBS_NOPRUNE=no), it is then deleted from
    the backend. The releases of one repository are handled in the order of their events.
    """

    name = "builds.update_released_binaries"
    quiet = True
    on = [Packtrack]
    max_attempts = 6
    backoff = Backoff(15, 60, 300, 900, 3600)
    claim_timeout = 120
    ordered = True

    def wants(self, event: Recorded) -> bool:
        return bool(reporter_of(event))

    def lane(self, event: Recorded, routing_key: str) -> str:
        payload: Packtrack.Payload = event.payload
        return f"{reporter_of(event)}:{payload.project}/{payload.repo}"

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        event = job.require_event()
        backend = reporter_of(event)
        payload: Packtrack.Payload = event.payload
        project, repository, key = payload.project, payload.repo, payload.payload
        if not (project and repository and key):
            raise Skip("the event does not name project, repo and payload")
        if not backend:
            raise Skip(f"no backend reported the event: its source is {event.source!r}")
        if backend not in settings.OBS_BACKENDS:
            raise Skip(f"OBS_BACKEND_URL has no backend {backend!r}")
        try:
            # The payload is deleted after the commit: if the job runs again, it changes nothing.
            with MetadataClient(backend) as client:
                items = client.notification_payload(key)
                changes = release(backend, project, repository, items, event.occurred_at)
                if not settings.OBS_NOPRUNE:
                    _delete_payload(client, key)
        except NotFound:
            raise Skip("the payload no longer exists: it was handled before") from None
        except InvalidName as error:
            raise Skip(str(error)) from None
        except BackendError as error:
            raise outcome_of(backend, error) from error
        return asdict(changes)


def _delete_payload(client: MetadataClient, key: str) -> None:
    """Delete the payload from the backend. If it refuses (500 without write permission), only log a
    warning: a retry would fail again."""
    try:
        client.delete_notification_payload(key)
    except Refused as error:
        log.warning("releases.payload_not_deleted", backend=client.name, key=key, error=str(error))

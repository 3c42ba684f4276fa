"""Store the binaries that a repository has released, from its packtrack payload."""

from dataclasses import asdict
from typing import Any

from django.conf import settings

from domains.builds.backends.client import BackendError, NotFound
from domains.builds.backends.metadata import InvalidName, MetadataClient
from domains.builds.backends.origin import backend_of
from domains.builds.backends.releases import release
from domains.builds.event_types.build import Packtrack
from events.publish import Recorded
from jobs.backoff import Backoff
from jobs.handler import ClaimedJob, Handler
from jobs.outcomes import Retry, Skip


class UpdateReleasedBinaries(Handler):
    """Compare the payload with the repository's binaries, store the changes, delete the payload.

    The releases of one repository are handled one by one, in the order of their events.
    """

    name = "builds.update_released_binaries"
    on = [Packtrack]
    max_attempts = 6
    backoff = Backoff(15, 60, 300, 900, 3600)
    claim_timeout = 120
    ordered = True

    def lane(self, event: Recorded, routing_key: str) -> str:
        payload: Packtrack.Payload = event.payload
        return f"{backend_of(event)}:{payload.project}/{payload.repo}"

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        event = job.event
        if event is None:
            raise Skip("its event no longer exists")
        backend = backend_of(event)
        payload: Packtrack.Payload = event.payload
        project, repository, key = payload.project, payload.repo, payload.payload
        if not (project and repository and key):
            raise Skip("the event does not name project, repo and payload")
        if backend not in settings.OBS_BACKENDS:
            raise Skip(f"OBS_BACKEND_URL has no backend {backend!r}")
        try:
            # The payload is deleted after the commit: if a crash comes between the two, the job
            # runs again and changes nothing.
            with MetadataClient(backend) as client:
                items = client.notification_payload(key)
                changes = release(backend, project, repository, items, event.occurred_at)
                client.delete_notification_payload(key)
        except NotFound:
            raise Skip("the payload no longer exists: it was fetched before") from None
        except InvalidName as error:
            raise Skip(str(error)) from None
        except BackendError as error:
            raise Retry(f"backend {backend}: {error}") from error
        return asdict(changes)

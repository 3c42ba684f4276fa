"""builds.update_released_binaries: what a repository has released, from its packtrack payload."""

from dataclasses import asdict
from typing import Any

from django.conf import settings

from domains.builds.event_types import Packtrack
from domains.builds.metadata import BackendError, Metadata, NotAName, NotFound
from domains.builds.origin import backend_of
from domains.builds.released import release
from events.publish import Recorded
from jobs.claimed import ClaimedJob
from jobs.handler import Backoff, Handler
from jobs.outcomes import Retry, Skip


class UpdateReleasedBinaries(Handler):
    """Compare the payload with the repository's binaries, keep the changes, delete the payload.

    One release of a repository after the other, in the order of their events.
    """

    name = "builds.update_released_binaries"
    on = [Packtrack]
    max_attempts = 6
    backoff = Backoff(15, 60, 300, 900, 3600)
    claim_timeout = 120
    ordered = True

    def lane(self, event: Recorded, routing_key: str) -> str:
        return f"{backend_of(event)}:{event.payload.get('project')}/{event.payload.get('repo')}"

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        event = job.event
        if event is None:
            raise Skip("its event is gone")
        backend = backend_of(event)
        project, repository, key = (event.payload.get(k) for k in ("project", "repo", "payload"))
        if not (project and repository and key):
            raise Skip("the event does not name project, repo and payload")
        if backend not in settings.OBS_BACKENDS:
            raise Skip(f"no backend {backend!r} to ask: see OBS_BACKEND_URL")
        try:
            return _update(backend, project, repository, key, event)
        except NotFound:
            raise Skip("the payload is gone: it was taken before") from None
        except NotAName as error:
            raise Skip(str(error)) from None
        except BackendError as error:
            raise Retry(f"backend {backend}: {error}") from error


def _update(
    backend: str, project: str, repository: str, key: str, event: Recorded
) -> dict[str, Any]:
    """Delete the payload only behind the commit: a crash between the two repeats a no-op."""
    with Metadata(backend) as asked:
        items = asked.notification_payload(key)
        changes = release(backend, project, repository, items, event.occurred_at)
        asked.delete_notification_payload(key)
    return asdict(changes)

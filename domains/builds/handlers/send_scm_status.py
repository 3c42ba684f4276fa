"""Set commit statuses at GitHub, GitLab, Gitea and similar hosts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.conf import settings

from tailrace.domains.builds.destinations.scm.base import CommitStatus, Provider
from tailrace.domains.builds.destinations.scm.providers import provider_of
from tailrace.jobs.destinations.delivery import DeliveryResult
from tailrace.jobs.destinations.handler import DestinationHandler
from tailrace.jobs.destinations.hidden import public_jobs
from tailrace.jobs.handler import Backoff, ClaimedJob
from tailrace.net.shared_client import shared_client

Message = tuple[Provider, CommitStatus, str]
"""The provider, the status, and the token of the host."""


class SendScmStatus(DestinationHandler[Message]):
    """Set the status of a commit. `builds.report_to_scm` creates the jobs.

    Each host has its own concurrency limit and circuit breaker. Statuses are sent only to hosts
    with a token in SCM_TOKENS, and statuses of hidden projects only to hosts in SCM_TAKES_HIDDEN.
    """

    name = "builds.send_scm_status"
    Payload = CommitStatus
    concurrency = 40
    per_destination = 4
    max_attempts = 6
    backoff = Backoff(60, 120, 300, 600)
    claim_timeout = 60
    time_limit = 60
    fair = True
    merge = "replace"

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, Message]]:
        for job in public_jobs(jobs, lambda job: takes_hidden(job.payload.host)):
            job.require_event()  # without it, nobody knows whether the project is hidden
            status: CommitStatus = job.payload
            provider, token = provider_of(status.host), settings.SCM_TOKENS.get(status.host)
            if not token:
                job.skip(f"SCM_TOKENS has no token for {status.host}")
            elif provider is None:
                job.skip(f"SCM_PROVIDERS has no provider for {status.host}")
            else:
                yield job, (provider, status, token)

    async def send(self, message: Message) -> DeliveryResult:
        provider, status, token = message
        reply = await shared_client(public_only=False).send(provider.post(status, token).request())
        result = provider.result_of(status, reply)
        return replace(result, reason=result.reason.replace(token, "***"))


def takes_hidden(host: str) -> bool:
    """Return whether the host also receives statuses of hidden projects."""
    return host in settings.SCM_TAKES_HIDDEN

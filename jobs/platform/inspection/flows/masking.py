"""Mask what a user may not see of the jobs of a flow."""

from collections.abc import Iterable

from django.contrib.auth.models import User

from tailrace.jobs.platform.inspection import visibility
from tailrace.jobs.platform.inspection.flows.graph import GraphJob


def mask_names(user: User, jobs: Iterable[GraphJob]) -> None:
    """Mask the names of the jobs that the user may not see; the names of queues stay."""
    jobs = [job for job in jobs if not job.is_outside]
    hidden = visibility.hidden_ids(user, (job.id for job in jobs))
    for job in jobs:
        if job.id in hidden:
            job.name = visibility.HIDDEN

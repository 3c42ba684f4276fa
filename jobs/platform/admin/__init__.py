"""The admin of jobs, queues, schedules, failures and events with their jobs.

Its pages need django-unfold; a project without it does not have them.
"""

from django.apps import apps

if apps.is_installed("unfold"):
    from tailrace.jobs.platform.admin import (  # noqa: F401  (these modules register their pages)
        breakers,
        events,
        failures,
        jobs,
        queues,
        schedules,
        sweeps,
    )

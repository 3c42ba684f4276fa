"""The admin of jobs, queues and schedules; and of events, which are shown with their jobs.

Its pages are made with django-unfold: a project without it has none of them.
"""

from django.apps import apps

if apps.is_installed("unfold"):
    from tailrace.jobs.admin import (  # noqa: F401  (they register their pages)
        breakers,
        events,
        failures,
        jobs,
        queues,
        schedules,
        sweeps,
    )

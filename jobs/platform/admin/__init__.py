"""The admin of jobs, flows, queues, schedules, failures and events with their jobs.

Its pages have the looks of django-unfold if it is installed, otherwise those of Django's admin.
"""

from django.contrib import admin

from tailrace.jobs.platform.admin import (  # noqa: F401  (these modules register their pages)
    breakers,
    events,
    failures,
    flows,
    jobs,
    queues,
    schedules,
    sweeps,
)


def register(site: admin.AdminSite) -> None:
    """Add our pages to a site other than `django.contrib.admin.site`, which has them anyway."""
    for model, page in [*admin.site._registry.items()]:
        if type(page).__module__.startswith(f"{__name__}.") and not site.is_registered(model):
            site.register(model, type(page))

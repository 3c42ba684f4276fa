"""The sidebar of the admin: sections of the core, and sections that apps declare in `menu.py`."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from tailrace.environment.discovery import import_modules
from tailrace.web.pages.menu import AdminLink, AdminSection

WORK = AdminSection(
    "Work",
    [
        AdminLink("Overview", "monitoring", view="tailrace:overview"),
        AdminLink("Events", "bolt", "tailrace_events.event"),
        AdminLink("Jobs", "task_alt", "tailrace_jobs.job"),
        AdminLink("Flows", "account_tree", "tailrace_jobs.flow"),
        AdminLink("Failures", "error", "tailrace_jobs.failuregroup"),
        AdminLink(
            "Queues",
            "low_priority",
            "tailrace_jobs.queue",
            permissions=["tailrace_jobs.pause_queue"],
        ),
    ],
)
SCHEDULES = AdminSection(
    "Schedules",
    [
        AdminLink("Schedules", "schedule", "tailrace_jobs.schedule"),
        AdminLink("Slots", "event_available", "tailrace_jobs.slot"),
        AdminLink("Sweep runs", "cleaning_services", "tailrace_jobs.sweeprun"),
        AdminLink("Breakers", "electrical_services", "tailrace_jobs.breaker"),
        AdminLink("Beat", "timer", "django_celery_beat.periodictask"),
    ],
)
PEOPLE = AdminSection(
    "People",
    [AdminLink("Users", "person", "auth.user"), AdminLink("Groups", "group", "auth.group")],
)


def sections(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the sections in the format of unfold."""
    menus = [getattr(module, "ADMIN_MENU", None) for module in import_modules("menu")]
    return [
        {
            "title": section.title,
            "separator": section is not WORK,
            "items": [_item(link) for link in section.links],
        }
        for section in (WORK, SCHEDULES, *menus, PEOPLE)
        if section
    ]


def _item(link: AdminLink) -> dict[str, Any]:
    item: dict[str, Any] = {"title": link.title, "icon": link.icon, "link": _address(link)}
    permissions = list(link.permissions)
    if link.model:
        app, name = link.model.split(".")
        permissions += [f"{app}.view_{name}", f"{app}.change_{name}"]
    if permissions:
        item["permission"] = lambda request: any(map(request.user.has_perm, permissions))
    if link.view == "tailrace:overview":  # all URLs begin with its URL: unfold would mark it always
        item["active"] = lambda request: False
    return item


def _address(link: AdminLink) -> str:
    name = link.model.replace(".", "_")
    return reverse(link.view or f"admin:{name}_changelist")

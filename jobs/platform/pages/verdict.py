"""The verdict for the overview: of each cause, the parts that the user may read, open and fix."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Link
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB_PAYLOAD
from tailrace.jobs.platform.pages.admin_links import admin_address


def shown_verdict(request: HttpRequest) -> dict[str, Any]:
    now = verdict.work_out()
    causes = [_shown(request, number, cause) for number, cause in enumerate(now.causes)]
    return {
        "healthy": now.healthy,
        "worst": causes[0] if causes else None,
        "others": causes[1:],
        "workers": now.workers,
        "connections": now.connections,
    }


def may_mend(request: HttpRequest, check: Check) -> bool:
    """Return whether the user may use the button of this check's causes."""
    if check.button is None:
        return False
    needed = [name for name in (check.permission, check.button.permission) if name]
    return request.user.has_perms(needed)


def _shown(request: HttpRequest, number: int, cause: Cause) -> dict[str, Any]:
    check = verdict.check_of(cause.code)
    return {
        "id": f"cause-{number}",
        "cause": cause,
        "private": cause.private if check is None or _permits(request, check.permission) else "",
        "quoted": cause.quoted if request.user.has_perm(VIEW_JOB_PAYLOAD) else "",
        "button": check.button if check and cause.subject and may_mend(request, check) else None,
        "action": _link(request, cause.action),
        "link": _link(request, cause.link),
    }


def _permits(request: HttpRequest, permissions: str) -> bool:
    return request.user.has_perms(permissions.split())


def _link(request: HttpRequest, link: Link | None) -> dict[str, str] | None:
    """Return the label and the address of the page, if the user may open it and there is one."""
    if link is None or not _permits(request, link.permission):
        return None
    site, _, view = link.view.partition(":")
    address = (
        admin_address(view, *link.args) if site == "admin" else reverse(link.view, args=link.args)
    )
    if not address:
        return None
    return {"label": link.label, "address": f"{address}?{link.query}" if link.query else address}

"""The verdict for the overview: of each cause, the parts that the user may read, open and fix."""

from typing import Any

from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse

from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Link


def shown_verdict(request: HttpRequest) -> dict[str, Any]:
    now = verdict.work_out()
    causes = [_shown(request, number, cause) for number, cause in enumerate(now.causes)]
    return {
        "healthy": now.healthy,
        "worst": causes[0] if causes else None,
        "others": causes[1:],
        "workers": len(stats.workers()) if now.healthy else None,
    }


def may_mend(request: HttpRequest, check: Check) -> bool:
    """Return whether the user may use the button of this check's causes."""
    needed = [name for name in (check.permission, check.button_permission) if name]
    return bool(check.button) and request.user.has_perms(needed)


def _shown(request: HttpRequest, number: int, cause: Cause) -> dict[str, Any]:
    check = verdict.check_of(cause.code)
    return {
        "id": f"cause-{number}",
        "cause": cause,
        "private": cause.private if check is None or _permits(request, check.permission) else "",
        "button": check.button if check and cause.subject and may_mend(request, check) else "",
        "link": cause.link and _permits(request, cause.link.permission)
        and {"label": cause.link.label, "address": _address(cause.link)},
    }  # fmt: skip


def _permits(request: HttpRequest, permission: str) -> bool:
    return not permission or request.user.has_perm(permission)


def _address(link: Link) -> str:
    args = [quote(arg) for arg in link.args] if link.view.startswith("admin:") else link.args
    return reverse(link.view, args=args)

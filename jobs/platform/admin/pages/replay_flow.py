"""Run a whole flow again: first a page with the plan, then the replay."""

from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.html import format_html

from tailrace.db.engine_database import home
from tailrace.db.locks import Blocked
from tailrace.db.row_ids import row_id
from tailrace.jobs.engine.inserting.new_job import InvalidJob
from tailrace.jobs.flows import actions
from tailrace.jobs.flows.replay import PlannedJob, plan_replay
from tailrace.jobs.models import Flow
from tailrace.jobs.platform.admin import rendering, theme
from tailrace.jobs.platform.inspection import visibility

MAX_PROBLEMS = MAX_CHANGED = 50
MAX_SHOWN = 100
NEWEST = "newest"
"""The field of the form with the newest flow: so a second click creates no second flow."""


def replay_view(request: HttpRequest, id: int, site: AdminSite) -> HttpResponse:
    """Show what a replay of the flow would do; on POST, do it."""
    visibility.require(request, visibility.VIEW_FLOW, visibility.VIEW_JOB, actions.PERMISSION)
    flow = get_object_or_404(Flow, pk=id)
    if request.method == "POST":
        return _replay(request, flow)
    plan = plan_replay(flow)
    user = visibility.user_of(request)
    shown = plan.jobs[:MAX_SHOWN]
    problems, changed = plan.problems[:MAX_PROBLEMS], plan.changed[:MAX_CHANGED]
    secret = _secret_ids(user, [*shown, *problems, *changed])
    context = {
        "title": f"Replay flow {flow.pk}",
        "opts": Flow._meta,
        "flow": flow,
        "plan": plan,
        "jobs": [_row(job, secret) for job in shown],
        "more_jobs": max(len(plan.jobs) - MAX_SHOWN, 0),
        "problems": [_row(job, secret) for job in problems],
        "changed": [_row(job, secret) for job in changed],
        "newest": Flow.objects.order_by("-pk").values_list("pk", flat=True).first(),
        "sees_payload": user.has_perm(visibility.VIEW_JOB_PAYLOAD),
    }
    return theme.page(site, request, "tailrace/jobs/admin/flow/replay.html", context)


def _replay(request: HttpRequest, flow: Flow) -> HttpResponse:
    newest = row_id(request.POST.get(NEWEST, "")) or 0
    try:
        with transaction.atomic(using=home()):
            Flow.objects.select_for_update(no_key=True).get(pk=flow.pk)
            copy = Flow.objects.filter(pk__gt=newest, copy_of=flow.pk).first()
            if copy is not None:
                messages.warning(request, "Nothing was done: the first click created this flow.")
                return redirect("admin:tailrace_jobs_flow_change", copy.pk)
            new = actions.apply_replay(visibility.user_of(request), plan_replay(flow))
    except Blocked as error:
        messages.error(request, f"Nothing was done: {error}.")
        return redirect("admin:tailrace_jobs_flow_replay", flow.pk)
    except InvalidJob:
        # The error may quote a payload: the page shows it to those who may see it.
        messages.error(request, "Nothing was done: a job cannot be created.")
        return redirect("admin:tailrace_jobs_flow_replay", flow.pk)
    old = rendering.row_link("tailrace_jobs_flow_change", "flow", flow.pk)
    messages.success(request, format_html("This flow was created by a replay of {}.", old))
    return redirect("admin:tailrace_jobs_flow_change", new.id)


def _secret_ids(user: User, jobs: list[PlannedJob]) -> set[int]:
    """Return the ids of the jobs whose names and payloads the user may not see."""
    return visibility.hidden_ids(user, {job.id for job in jobs})


def _row(job: PlannedJob, secret: set[int]) -> dict[str, Any]:
    is_secret = job.id in secret
    return {
        "job": job,
        "is_secret": is_secret,
        "name": visibility.HIDDEN if is_secret else job.name,
        "payload": "" if is_secret or job.payload is None else rendering.json_block(job.payload),
        "changes": [] if is_secret else [(name, *values) for name, values in job.changes.items()],
    }

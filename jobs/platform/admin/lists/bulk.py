"""An action on all matching jobs of a list: a preview with a button. Replays can be undone."""

from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from tailrace.db.connections import timed_out
from tailrace.db.locks import Blocked
from tailrace.db.row_ids import row_id
from tailrace.jobs.models import FailureGroup, Job, Replay
from tailrace.jobs.operations import batches
from tailrace.jobs.operations.preview import Preview, preview
from tailrace.jobs.operations.undo import progress, undo
from tailrace.jobs.platform.admin import theme
from tailrace.jobs.platform.admin.lists.several import in_words
from tailrace.jobs.platform.inspection import visibility
from tailrace.jobs.platform.inspection.display.formatting import STATE_LABELS
from tailrace.jobs.platform.inspection.search.find import TOO_SLOW


def all_matching(request: HttpRequest, job_admin: Any, name: str) -> HttpResponse:
    """Preview the action for all jobs that match the list's query string; on POST, apply it."""
    visibility.require(request, visibility.VIEW_JOB, batches.PERMISSION)
    action = batches.JOB_ACTIONS.get(name)
    if action is None:
        raise Http404
    back = f"{reverse('admin:tailrace_jobs_job_changelist')}?{request.GET.urlencode()}"
    changelist = job_admin.get_changelist_instance(request)
    if isinstance(changelist, HttpResponseRedirect):
        return changelist
    if job_admin.state_of(changelist.params) not in action.states:
        states = " or ".join(STATE_LABELS[state] for state in action.states)
        messages.warning(
            request, f"To select all matching jobs, first filter by the state {states}."
        )
        return redirect(back)
    hidden_jobs = partial(visibility.hidden_jobs, visibility.user_of(request))
    hidden = hidden_jobs if job_admin.reveals_hidden(request) else None
    jobs, what = changelist.queryset, filters_as_text(changelist.params)
    last = row_id(request.POST.get("last_id", ""))
    try:
        if request.method == "POST" and last is not None:
            jobs = jobs.filter(pk__lte=last)
            summary = batches.apply(request.user, action, jobs, what=what, hidden=hidden)
            return done(request, action, summary, back) or redirect(back)
        shown = preview(action, jobs, hidden)
    except OperationalError as error:
        if not timed_out(error):
            raise
        messages.warning(request, TOO_SLOW)
        return redirect(back)
    return _show_preview(job_admin.admin_site, request, action, shown, what, back)


def filters_as_text(params: dict[str, Any]) -> str:
    """Return the filters of a list as text: `queue = a, state = failed`."""
    if id := row_id(params.get("failure", "")):
        group = FailureGroup.objects.filter(pk=id).first()
        params = params | {"failure": f"{id} ({group})" if group else id}
    return in_words(params) or "all jobs"


def show_summary(request: HttpRequest, action: batches.JobAction, summary: batches.Summary) -> None:
    """Add a message with the result, which the next page shows."""
    changed = summary.changed or summary.stop_requested
    level = messages.SUCCESS if changed else messages.WARNING
    messages.add_message(request, level, summary.text(action))


def done(
    request: HttpRequest, action: batches.JobAction, summary: batches.Summary, back: str
) -> HttpResponse | None:
    """Add a message with the result; redirect to the page that can undo it, or to `back`."""
    show_summary(request, action, summary)
    if summary.replay is not None and summary.changed:
        return redirect("admin:tailrace_jobs_replay", summary.replay.pk)
    return redirect(back) if back else None


def _show_preview(
    site: AdminSite,
    request: HttpRequest,
    action: batches.JobAction,
    shown: Preview,
    what: str,
    back: str,
) -> HttpResponse:
    rows = Job.objects.filter(pk__in=shown.sample).defer("payload", "result").order_by("-pk")
    sample = list(rows)
    visibility.mask_jobs(visibility.user_of(request), sample)
    count = f"more than {batches.MAX_JOBS:,}" if shown.more else f"{shown.jobs:,}"
    context = {
        "title": f"{action.title}: {count} job{'' if count == '1' else 's'}",
        "opts": Job._meta,
        "action": action,
        "preview": shown,
        "sample": sample,
        "count": count,
        "most": batches.MAX_JOBS,
        "what": what,
        "back": back,
    }
    return theme.page(site, request, "tailrace/jobs/admin/lists/bulk.html", context)


def replay_page(request: HttpRequest, id: int, site: AdminSite) -> HttpResponse:
    """Show a replay of many jobs; on POST, undo it for the jobs that have not started."""
    visibility.require(request, visibility.VIEW_JOB, batches.PERMISSION)
    replay = get_object_or_404(Replay.objects.select_related("user"), pk=id)
    if request.method == "POST":
        try:
            result = undo(replay, request.user)
        except Blocked as error:
            messages.warning(request, f"{error}.")
        else:
            text = f"{len(result.changed):,} jobs were restored to their state before the replay."
            if result.refused:
                text += f" {len(result.refused):,} jobs have started or changed since."
            level = messages.SUCCESS if result.changed else messages.WARNING
            messages.add_message(request, level, text)
        return redirect("admin:tailrace_jobs_replay", id)
    jobs, not_begun = progress(replay)
    context = {
        "title": f"Replay {id}",
        "opts": Job._meta,
        "replay": replay,
        "kept": jobs,
        "not_begun": not_begun,
    }
    return theme.page(site, request, "tailrace/jobs/admin/replay.html", context)

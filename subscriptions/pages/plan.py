"""The page of a user's plan: its jobs and their next runs."""

from django.http import HttpResponse

from tailrace.subscriptions.models import PlanSubscription
from tailrace.subscriptions.plans.schedules import next_runs
from tailrace.web.pages.frame import PersonRequest, person_page, show


@person_page("GET", "HEAD")
def my_plan(request: PersonRequest) -> HttpResponse:
    """Show the plan, its status and the next runs of its jobs, in the subscription's time zone."""
    rows = PlanSubscription.objects.select_related("plan")
    subscription = rows.filter(account=request.user).first()
    context = {}
    if subscription is not None:
        runs = {run.job.pk: run.at for run in next_runs(subscription)}
        jobs = [(job, runs.get(job.pk)) for job in subscription.plan.jobs.order_by("pk")]
        context = {"subscription": subscription, "jobs": jobs}
    return show(request, "tailrace/subscriptions/pages/plan.html", context)

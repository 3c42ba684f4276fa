"""What a caller of this project does, each step by name: `python scenario.py post` prints JSON."""

import json
import os
import sys
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from asgiref.sync import async_to_sync
from config.celery import app
from django.conf import settings
from django.core import checks
from django.test import AsyncClient, Client, override_settings
from jobs.models import Job
from jobs.tasks import count_words, rank
from tailrace.db import connections, query
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job as OwedJob


def post():
    """Two requests that succeed, and one that fails after it has written everything."""
    client = Client(raise_request_exception=False)
    given = [{"title": "Somebody who drives"}, {"title": "A cook"}, {"title": "x", "fails": True}]
    return [
        client.post("/vacancies", json.dumps(each), content_type="application/json").status_code
        for each in given
    ]


def tasks():
    """Tasks of the project's own, with their results: one on its default queue, one by its route."""
    return [count_words.delay("a cook who drives").get(180), rank.delay([2, 1]).get(180)]


def queues():
    """What each worker serves."""
    active = app.control.inspect(timeout=120, limit=1).active_queues()
    return {node: sorted(queue["name"] for queue in each) for node, each in active.items()}


def limits():
    """A limit of the project's own for all of its tasks, and the limits of our task."""
    app.loader.import_default_modules()
    ours = app.tasks["jobs.announce"]
    return [app.tasks["jobs.tasks.rank"].rate_limit, ours.rate_limit, ours.soft_time_limit]


def prepared_statements():
    """The statements that the engine's session has prepared, after it sent one ten times."""
    with connections.engine():
        for _ in range(10):
            query.prepared("SELECT 1")
        return query.query("SELECT statement FROM pg_prepared_statements")


def wait():
    return enqueue("jobs.wait", {"seconds": float(sys.argv[2])})


def from_async_view():
    return async_to_sync(AsyncClient().get)("/async").status_code


def metrics():
    """The statuses of the metrics for anonymous clients and for monitoring, and the lines about the tick."""
    with override_settings(TAILRACE={**getattr(settings, "TAILRACE", {}), "HEALTH_TOKEN": "t" * 40}):
        answers = [
            Client(headers=headers).get("/tailrace/metrics")
            for headers in (
                {},
                {"Authorization": "Bearer "},
                {"Authorization": f"Bearer {'u' * 40}"},
                {"Authorization": f"Bearer {'t' * 40}"},
            )
        ]
    lines = answers[-1].content.decode().splitlines()
    return [each.status_code for each in answers], [each for each in lines if "tick" in each]


def state():
    jobs = OwedJob.objects.order_by("id").values_list("handler", "state", "claim_no", "result")
    return {"jobs": list(jobs), "announced": list(Job.objects.values_list("announced", flat=True))}


def until():
    """The state once the first word is true of it; the second one is how long to wait."""
    end = time.monotonic() + float(sys.argv[3])
    while not eval(sys.argv[2], {}, found := state()):
        assert time.monotonic() < end, f"never {sys.argv[2]}: {found}"
        time.sleep(0.05)
    return found


def wrong():
    """The ids of the checks that fail, for each wrong configuration."""
    ids = {}
    for name, value in [
        ("TAILRACE", ["JOBS_TIME_LIMIT"]),
        ("TAILRACE", {"JOBS_TIME_LIMIT": "soon"}),
        ("TAILRACE", {"JOB_TIME_LIMIT": 5}),
        ("USE_TZ", False),
        ("CELERY_BROKER_URL", "memory://"),
        ("CELERY_ACCEPT_CONTENT", ["pickle"]),
        ("CELERY_TASK_ALWAYS_EAGER", True),
    ]:
        with override_settings(**{name: value}):
            ids[f"{name} = {value}"] = shown()
    ids["right"] = shown()
    with override_settings(TAILRACE={"HEALTH_TOKEN": "short"}):
        ids["HEALTH_TOKEN = short, with --deploy"] = shown(include_deployment_checks=True)
    return ids


def shown(**options):
    messages = checks.run_checks(tags=["jobs"], **options)
    return [f"{each.id}: {each.msg} ({each.hint})" for each in messages]


print(json.dumps(globals()[sys.argv[1]]()))

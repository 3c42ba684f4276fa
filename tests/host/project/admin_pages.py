"""Fetch every page of Tailrace in this project and write them to a file as JSON:
`admin_pages.py FILE VARIANT`. The admin is the `stock` one, the project's `own` site, the site of
`unfold`, or there is `none`; the variant `rows` adds the rows that the others show. With a third
argument, serve the pages at this port instead."""

import json
import os
import sys
from datetime import timedelta
from types import ModuleType

os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
FILE, VARIANT = sys.argv[1:3]

from config import settings as project

ADMIN = "django.contrib.admin"
if VARIANT == "unfold":
    project.INSTALLED_APPS.insert(0, "unfold")
if VARIANT == "none":
    project.INSTALLED_APPS.remove(ADMIN)
project.LANGUAGE_CODE = "de" if VARIANT == "own" else "en-us"

import django

django.setup()

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from django.urls import include, path
from django.utils import timezone
from events.event_types import VacancyAdded
from pydantic import BaseModel, Field
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs import models
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.handler import Every, Handler, Permanent
from tailrace.jobs.testing import run_owed


class Remind(Handler):
    """Remind the people who saved a vacancy."""

    name = "jobs.remind"
    request_permission = "tailrace_jobs.replay_job"

    class Payload(BaseModel):
        vacancy: int = Field(description="The vacancy's number.")
        text: str = ""
        urgent: bool = False

    def handle(self, job):
        job.log("looks for the people who saved it")
        if job.payload.vacancy < 0:
            raise Permanent(f"there is no vacancy {job.payload.vacancy}")
        return {"people": 3}


class Tidy(Handler):
    """Delete old vacancies."""

    name = "jobs.tidy"
    schedule = Every(3600)

    def handle(self, job):
        raise TimeoutError("the database of old vacancies does not answer")


if VARIANT == "own":
    from django.contrib import admin
    from tailrace.jobs.platform.admin import register

    site = admin.AdminSite("staff")
    site.site_header = "The job board's own admin"
    register(site)
if VARIANT in ("own", "none"):
    urls = ModuleType("urls")
    urls.urlpatterns = [path("tailrace/", include("tailrace.jobs.platform.pages.urls"))]
    if VARIANT == "own":
        urls.urlpatterns += [path("admin/", site.urls)]
    project_urls, sys.modules["urls"] = "urls", urls
    django.conf.settings.ROOT_URLCONF = "urls"


def add_rows(user):
    """Do some work, and add rows of what takes longer to come about."""
    for title in ("Baker", "Carpenter"):
        vacancy = NewEvent(VacancyAdded, {"vacancy": 1, "title": title}, subject=f"vacancy:{title}")
        publish(vacancy)
    flagged = publish(NewEvent(VacancyAdded, {"vacancy": 2, "title": "Cook"}))[0]
    Event.objects.filter(pk=flagged.id).update(problem="The title occurs twice.")
    for vacancy in (-1, -2, 7):
        enqueue("jobs.remind", {"vacancy": vacancy})
    enqueue("jobs.tidy")
    run_owed(may_fail=True)
    now = timezone.now()
    first = enqueue("jobs.remind", {"vacancy": 8, "text": "Apply!"}, delay=7200)
    enqueue("jobs.remind", {"vacancy": 9}, after=first)
    enqueue_many("jobs.remind", [{"payload": {"vacancy": 1}, "delay": 9000}] * 60)
    running = models.Job.objects.create(
        handler="jobs.remind", state="running", payload={"vacancy": 10}, attempt=1, claim_no=1,
        started_at=now - timedelta(seconds=90), lease_until=now + timedelta(hours=1),
        worker="celery@board", progress_done=30, progress_total=120, progress_note="people asked",
    )  # fmt: skip
    models.LogLines.objects.create(
        job=running, claim_no=1, first=1, last=1, lines=[[1, now.isoformat(), "asks the people"]]
    )
    flow = NewFlow("tell everybody about the bakers of the old town", deadline=timedelta(hours=1))
    stage = flow.add("jobs.remind", {"vacancy": 1}, name="look them up")
    tell = flow.group("jobs.remind", [{"vacancy": 2}] * 30, name="tell", after=stage)
    both = [flow.add("jobs.remind", {"vacancy": n}, name=f"sum {n}", after=tell) for n in (3, 4)]
    flow.add("jobs.tidy", after_failure=both, name="undo")
    flow.add("jobs.tidy", after_end=[stage, *both], name="tidy up")
    flow.enqueue()
    mine = models.Schedule.objects.create(
        name="remind each morning", handler="jobs.remind", payload={"vacancy": 1},
        cron="0 7 * * *", owner=user.get_username(), next_run_at=now + timedelta(hours=5),
    )  # fmt: skip
    outcome = {"outcome": "missed", "reason": "no worker ran"}
    models.Slot.objects.create(schedule=mine, at=now - timedelta(days=1), **outcome)
    models.SweepRun.objects.create(invariant="jobs.lost", outcome="checked", found=2, repaired=2)
    models.Breaker.objects.create(name="jobs.remind: mail", failures=5, last_error="refused")
    models.Breaker.objects.create(name="jobs.remind: text", failures=1, last_error="busy")
    replay = models.Replay.objects.create(user=user, what="state = failed", jobs=1)
    models.ReplayedJob.objects.create(replay=replay, job_id=first, before={})


def show_worker():
    """Let a worker have a recent heartbeat."""
    facts = {
        "node": "celery@board", "host": "board", "pid": 7, "concurrency": 2, "pool": "prefork",
        "memory": 7 * 10**7, "processes": [{"pid": 8, "memory": 5 * 10**7}],
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tailrace_jobs_pulse (name, at, queues, by, facts) VALUES"
            " ('worker:celery@board 7', now(), %s, '', %s)"
            " ON CONFLICT (name) DO UPDATE SET at = excluded.at",
            [json.dumps(["jobs.announce", "jobs.remind"]), json.dumps(facts)],
        )


def pages(client):
    """Yield the address of each page and its answer; POST with data."""

    def get(address, **data):
        if data:
            return f"{address} POST", client.post(address, data)
        return address, client.get(address)

    tailrace = ("", "overview/panels", "overview/workers", "overview/workers/now")
    more = ("overview/latency", "overview/latency/now", "overview/storage", "overview/storage/now")
    for address in (*tailrace, *more):
        yield get(f"/tailrace/{address}")
    if VARIANT == "none":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("DELETE FROM tailrace_jobs_pulse")
            yield "without workers", client.get("/tailrace/overview/workers")
            transaction.set_rollback(True)
        return
    yield get("/admin/")
    shown = {
        model: [str(row.pk) for row in getattr(models, model).objects.order_by("pk")[:12]]
        for model in ("Job", "Flow", "Queue", "FailureGroup", "Schedule", "Slot", "SweepRun", "Breaker")
    }
    for model, keys in shown.items():
        yield get(f"/admin/tailrace_jobs/{model.lower()}/")
        for key in keys:
            page = f"/admin/tailrace_jobs/{model.lower()}/{django.contrib.admin.utils.quote(key)}/"
            yield get(f"{page}change/")
        yield get(f"{page}history/")
    yield get("/admin/tailrace_events/event/")
    for event in Event.objects.all():
        yield get(f"/admin/tailrace_events/event/{event.pk}/change/")
    yield get(f"/admin/tailrace_jobs/flow/{shown['Flow'][0]}/replay/")
    yield get("/admin/tailrace_jobs/job/?q=jobs.remind+state:failed")
    for query in ("state=running", "state=running&lane=none"):
        yield get(f"/admin/tailrace_jobs/job/?{query}")
    yield get("/admin/tailrace_jobs/schedule/add/")
    yield get("/admin/tailrace_jobs/schedule/add/", name="", cron="now")
    yield get("/admin/tailrace_jobs/queue/jobs.remind/run/")
    yield get("/admin/tailrace_jobs/queue/jobs.remind/run/", **{"payload-vacancy": "many"})
    again = models.Job.objects.filter(handler="jobs.remind").first()
    yield get(f"/admin/tailrace_jobs/queue/jobs.remind/run/?again={again.pk}")
    queues = {"action": "pause_queues", "_selected_action": shown["Queue"]}
    yield get("/admin/tailrace_jobs/queue/", **queues)
    yield get("/admin/tailrace_jobs/job/all/replay/?state=failed&queue=jobs.remind")
    yield get(f"/admin/tailrace_jobs/job/replays/{models.Replay.objects.get().pk}/")


def main():
    people = get_user_model().objects
    if VARIANT == "rows":
        call_command("migrate", verbosity=0)
        add_rows(people.create_superuser("ann@board.example", "a long password"))
        return
    show_worker()
    user = people.get()
    client = Client(headers={"host": "localhost"})
    unknown = client.get("/tailrace/")
    client.force_login(user)
    if len(sys.argv) > 3:
        serve(client, int(sys.argv[3]))
    shown = {
        address: [answer.status_code, answer.headers.get("Location", ""), answer.content.decode()]
        for address, answer in (("anonymous", unknown), *pages(client))
    }
    with open(FILE, "w") as file:
        json.dump(shown, file)


def serve(client, port):
    """Serve the project to a browser with the session of the client; write the cookie first."""
    from wsgiref.simple_server import make_server

    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.wsgi import get_wsgi_application

    with open(FILE, "w") as file:
        json.dump(client.cookies["sessionid"].value, file)
    make_server("127.0.0.1", port, StaticFilesHandler(get_wsgi_application())).serve_forever()


main()

"""A job is run again with a changed payload: as a new job that names the old one, by permission."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tests.jobs import operators
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Log, Requested, Working
from tests.web.jobs.requesting import operator
from tests.web.program import problem

pytestmark = pytest.mark.django_db
RUN = f"/admin/tailrace_jobs/queue/{Requested.name}/run/"
RIGHTS = (
    "tailrace_jobs.add_job",
    "tailrace_jobs.view_queue",
    "tailrace_jobs.view_job",
    "tailrace_jobs.view_job_payload",
)
PAYLOAD = {"title": "March", "size": "long", "pages": 7, "tags": ["a"]}


def _job(**fields: Any) -> Job:
    values: dict[str, Any] = {"handler": Requested.name, "state": "failed", "payload": PAYLOAD}
    return Job.objects.create(**values | fields)


def _page(client: Client, job: Job) -> str:
    return client.get(f"/admin/tailrace_jobs/job/{job.pk}/change/").content.decode()


def _form(client: Client, job: Job, **changed: Any) -> Any:
    """Send the form as it is shown, with these values instead."""
    form = client.get(RUN, {"again": job.pk}).context["form"]
    shown = {field.html_name: field.value() for field in form if field.value() is not None}
    return client.post(f"{RUN}?again={job.pk}", shown | {"request_key": "k"} | changed)


def test_the_form_shows_the_old_payload_and_makes_a_linked_job() -> None:
    client, old = operators.client("keeper", *RIGHTS), _job(priority=2, lane="red")
    assert f"{RUN}?again={old.pk}" in _page(client, old)
    assert _form(client, old, **{"payload-title": "April"}).status_code == 302
    new = Job.objects.get(copy_of=old.pk)
    assert {**new.payload, "title": "March"}.items() >= PAYLOAD.items()
    assert (new.payload["title"], new.state, new.priority) == ("April", "pending", 2)
    assert f"job {old.pk}</a>" in _page(client, new)
    assert f"job {new.pk}</a>" in _page(client, old)
    assert Job.objects.get(pk=old.pk).payload == PAYLOAD
    messages = LogEntry.objects.order_by("pk").values_list("object_id", "change_message")
    assert list(messages) == [(str(old.pk), f"run again as job {new.pk}"),
                              (str(new.pk), "requested")]  # fmt: skip


def test_a_payload_that_does_not_validate_makes_no_job() -> None:
    client, old = operators.client("keeper", *RIGHTS), _job()
    assert _form(client, old, **{"payload-title": "x"}).status_code == 422
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    "missing", ["tailrace_jobs.add_job", "tailrace_jobs.view_job_payload", "tailrace_jobs.view_job"]
)
def test_each_permission_is_needed(missing: str) -> None:
    client = operators.client("keeper", *(right for right in RIGHTS if right != missing))
    old = _job()
    assert client.get(RUN, {"again": old.pk}).status_code == 403
    assert client.post(f"{RUN}?again={old.pk}", {"payload-title": "April"}).status_code == 403
    assert "again=" not in _page(client, old)


def test_other_jobs_are_not_run_again() -> None:
    client = operators.client("keeper", *RIGHTS)
    (event,) = publish(NewEvent(Happened, {"who": "w"}))
    for job, status in ((_job(handler=Working.name), 403), (_job(event_id=event.id), 404)):
        assert client.get(RUN, {"again": job.pk}).status_code == status
        assert "again=" not in _page(client, job)
    for id in ("0", "x", "9" * 30):
        assert client.get(RUN, {"again": id}).status_code == 404


def test_jobs_of_any_handler_with_a_payload_are_run_again_by_a_permission_of_its_own() -> None:
    """`replay_job` is not enough: a payload may say anything that the handler can do."""
    old = _job(handler=Working.name, payload={"note": "old"}, routing_key="north", lane="red")
    form = f"/admin/tailrace_jobs/queue/{Working.name}/run/?again={old.pk}"
    replayer = operators.client("replayer", "tailrace_jobs.replay_job", *RIGHTS)
    assert replayer.get(form).status_code == 403
    assert "again=" not in _page(replayer, old)
    keeper = operators.client("keeper", "tailrace_jobs.change_job_payload", *RIGHTS[2:])
    assert form in _page(keeper, old)
    sent = {"request_key": "k", "payload-note": "new", "payload-do": "nothing"}
    assert keeper.post(form, sent).status_code == 302
    new = Job.objects.get(copy_of=old.pk)
    assert (new.payload["note"], new.routing_key) == ("new", "north")
    assert LogEntry.objects.filter(object_id=str(old.pk)).count() == 1
    assert keeper.get(f"/admin/tailrace_jobs/queue/{Working.name}/run/").status_code == 403, (
        "Run now"
    )
    assert keeper.get(RUN, {"again": _job().pk}).status_code == 200, "also of those on request"
    nothing = _job(handler=Log.name, payload=None)
    assert (
        keeper.get(f"/admin/tailrace_jobs/queue/{Log.name}/run/?again={nothing.pk}").status_code
        == 404
    )


def test_the_api_runs_a_job_of_any_handler_again_by_that_permission() -> None:
    ann, old = operator(), _job(handler=Working.name, payload={"note": "old"})
    address = f"/jobs/{old.pk}/run-again"
    refused = problem(ann.post(address, {"payload": {}}), 403, "permission-missing")
    assert "tailrace_jobs.change_job_payload" in refused["detail"]
    ann.user.user_permissions.add(Permission.objects.get(codename="change_job_payload"))
    wrong = problem(ann.post(address, {"payload": {"noet": "x"}}), 422, "invalid")
    assert "did you mean 'note'?" in wrong["errors"][0]["detail"]
    assert ann.post(address, {"payload": {"note": "new"}}).status_code == 201
    assert Job.objects.get(copy_of=old.pk).payload["note"] == "new"
    refused = problem(ann.post("/jobs", {"handler": Working.name}), 403, "handler-closed")
    assert "cannot be requested" in refused["detail"]


def test_the_api_runs_a_job_again_with_its_payload_or_another() -> None:
    ann, old = operator(), _job(lane="red")
    same = ann.post(f"/jobs/{old.pk}/run-again", {})
    assert same.status_code == 201, same.content
    new = Job.objects.get(pk=same.json()["id"])
    assert (new.payload["title"], new.copy_of, new.lane) == ("March", old.pk, "red")
    assert ann.get(f"/jobs/{new.pk}").json()["copy_of"] == old.pk
    other = ann.post(f"/jobs/{old.pk}/run-again", {"payload": {"title": "April"}, "priority": 0})
    assert Job.objects.get(pk=other.json()["id"]).payload["title"] == "April"
    wrong = problem(ann.post(f"/jobs/{old.pk}/run-again", {"payload": {}}), 422, "invalid")
    assert wrong["errors"][0]["pointer"] == "#/payload/title"
    problem(ann.post(f"/jobs/{old.pk + 99}/run-again", {}), 404)
    ann.user.user_permissions.remove(ann.user.user_permissions.get(codename="view_job_payload"))
    problem(ann.post(f"/jobs/{old.pk}/run-again", {}), 403, "permission-missing")

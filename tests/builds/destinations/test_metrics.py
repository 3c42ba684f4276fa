"""What is measured of events, and the messages about it on the bus."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks

from tailrace.domains.builds.event_types.metric import Metric
from tailrace.events.publish import NewEvent, publish
from tailrace.events.types import get_type
from tailrace.jobs.destinations.hidden import HIDDEN
from tailrace.jobs.models import Job
from tests.builds.destinations.kit import NOTIFY, SECRET
from tests.servers.rabbit import exchange
from tests.servers.web import serving

BUILT = {
    "project": "home:alice", "package": "hello", "repository": "standard", "arch": "x86_64",
    "readytime": "1700000000", "starttime": "1700000060", "endtime": "1700000360",
    "reason": "source change", "workerid": "worker1:1", "buildtype": "spec",
}  # fmt: skip
BUILT_LINE = (
    "build,worker=worker1:1,arch=x86_64,reason=source_change,state={},buildtype=spec"
    " duration=300,latency=60,total=360"
)
SERVICE = {"project": "home:alice", "package": "hello"}
CHANGED = {"number": 7, "oldstate": "new", "state": "accepted", "duration": 12}


@pytest.mark.parametrize(
    ("name", "payload", "line"),
    [
        ("build_fail", BUILT, BUILT_LINE.format("fail")),
        ("build_success", BUILT, BUILT_LINE.format("success")),
        ("build_unchanged", BUILT, BUILT_LINE.format("unchanged")),
        ("build_fail", BUILT | {"endtime": "", "starttime": "soon"}, ""),
        ("service_success", SERVICE, "service,status=success value=1"),
        ("service_fail", SERVICE, "service,status=fail,error=unknown value=1"),
        ("service_fail", SERVICE | {"error": "bad link: x"},
         "service,status=fail,error=bad_link value=1"),
        ("request_create", CHANGED, "request.create number=7"),
        ("request_statechange", CHANGED,
         "request.state_change,oldstate=new,state=accepted number=7,duration=12"),
        ("request_reviews_done", CHANGED,
         "request.reviews_done,oldstate=new,state=accepted number=7,duration=12"),
        ("comment_for_request", {"number": 7}, "comment,diff_ref=false value=1"),
        ("comment_for_request", {"number": 7, "diff_file_index": 0},
         "comment,diff_ref=true value=1"),
    ],
)  # fmt: skip
def test_events_are_measured_as_obs_does(name: str, payload: dict[str, Any], line: str) -> None:
    assert get_type(f"builds.{name}").metric(payload).line() == line


def test_a_value_cannot_add_tags_fields_or_lines() -> None:
    evil = "x,state=success value=9\nbuild,arch=i586 duration=1\\"
    line = Metric("build", {"duration": 1, "total": "2,x=3"}, {"arch": evil, "none": ""}).line()
    assert line == (
        r"build,arch=x\,state\=success\ value\=9\ build\,arch\=i586\ duration\=1\\ duration=1"
    )


@pytest.mark.django_db(transaction=True)
def test_metrics_go_to_the_buses_that_a_setting_names(settings, tmp_path: Path, run_jobs) -> None:
    path = tmp_path / "bus.ndjson"
    with exchange() as rabbit, serving() as server:
        settings.BUS_WEBHOOK_SECRET = SECRET
        settings.BUS_BACKENDS = {
            "rabbit": rabbit.url, "hook": server.url, "file": f"file://{path}",
            "quiet": "file:///nowhere",
        }  # fmt: skip
        settings.BUS_METRICS = ["rabbit", "hook", "file"]
        (event, _commit) = publish(
            [NewEvent("builds.build_fail", BUILT), NewEvent("builds.commit", SERVICE)]
        )
        run_jobs("builds.send_metrics")
        [message] = rabbit.messages()
        [request] = server.requests
    line = BUILT_LINE.format("fail")
    assert message.delivery_info["routing_key"] == "opensuse.obs.metrics"
    assert message.body == line
    assert message.properties["content_type"] == request.headers["content-type"] == "text/plain"
    assert request.body.decode() == line
    assert request.headers["webhook-id"] == f"{event.id}-metric", "not that of the event's message"
    assert message.properties["message_id"] == f"{event.id}-metric"
    written = {"id": event.id, "key": "opensuse.obs.metrics", "body": line}
    assert json.loads(path.read_text()) == written


@pytest.mark.django_db(transaction=True)
def test_by_default_nothing_is_measured(settings) -> None:
    publish(NewEvent("builds.build_fail", BUILT))
    assert not Job.objects.filter(handler="builds.send_metrics").exists()
    assert Job.objects.filter(handler=NOTIFY).exists()


@pytest.mark.django_db(transaction=True)
def test_metrics_of_hidden_projects_are_not_sent(settings, tmp_path: Path, run_jobs) -> None:
    path = tmp_path / "bus.ndjson"
    settings.OBS_UNKNOWN_PROJECTS = "hidden"
    settings.BUS_BACKENDS = {"file": f"file://{path}"}
    settings.BUS_METRICS = ["file"]
    publish(NewEvent("builds.build_fail", BUILT))
    run_jobs("builds.send_metrics")
    assert Job.objects.get(handler="builds.send_metrics").error == HIDDEN
    assert not path.exists()


def test_the_setting_names_buses_that_take_metrics(settings) -> None:
    settings.BUS_BACKENDS = {"files": "file:///x", "plugins": "obs+https://backend.example"}
    settings.BUS_METRICS = ["file", "plugins"]
    messages = {error.id: error.msg for error in run_checks(tags=["builds"])}
    assert (
        "BUS_METRICS: BUS_BACKENDS has no bus 'file'; did you mean"
        in messages["tailrace_builds.E005"]
    )
    assert "'plugins' is an obs+http(s) backend" in messages["tailrace_builds.E006"]

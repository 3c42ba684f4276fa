"""A build service's backend whose plugins are notified of events."""

import json
from datetime import UTC, datetime

import pytest
from django.core.checks import run_checks

from tailrace.domains.builds.destinations.backend import BackendBus
from tailrace.domains.builds.destinations.base import Message, Misconfigured
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.destinations.delivery import DeliveryStatus
from tests.builds.destinations.kit import NOTIFY, delivered, jobs_of, states
from tests.servers.web import Response, serving

pytestmark = pytest.mark.django_db(transaction=True)
FAILED = {"project": "home:alice", "package": "hellö", "repository": "r", "arch": "x86_64"}
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_plugins_get_the_type_of_the_log_and_the_payload_with_its_time(
    settings, backend, run_jobs
) -> None:
    settings.BUS_BACKENDS = {"plugins": backend.url.replace("http://", "obs+http://")}
    settings.BUS_TAKES_HIDDEN = ["plugins"]
    end = backend.log.end
    events = publish([NewEvent("builds.build_fail", FAILED, occurred_at=NOON)])
    run_jobs(NOTIFY)
    assert states(events) == ["completed"]
    time = int(NOON.timestamp())
    assert backend.plugin_notifications == [("BUILD_FAIL", FAILED | {"time": time})]
    assert backend.log.end == end, "nothing comes back as an event"


def test_types_that_are_not_in_the_log_are_not_sent(settings) -> None:
    settings.BUS_BACKENDS = {"plugins": "obs+https://backend.example:5352"}
    events = publish(NewEvent("builds.request_create", {"number": 7}))
    assert jobs_of(events) == []


@pytest.mark.parametrize(
    ("status", "result"), [(400, "REJECTED"), (404, "REJECTED"), (503, "FAILED")]
)
def test_what_the_backend_answers(status: int, result: str) -> None:
    with serving(lambda request: Response(status)) as server:
        url = server.url.replace("http://", "obs+http://user:s3cret@")
        bus = BackendBus("plugins", url)
        [reply] = delivered(bus, [Message(1, "k", b"{}", raw_type="A B/../C")])
        [request] = server.requests
    assert reply.status is DeliveryStatus[result]
    assert "s3cret" not in reply.reason
    assert request.path == "/notify_plugins/A%20B%2F..%2FC"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["authorization"] == "Basic dXNlcjpzM2NyZXQ="
    assert json.loads(request.body) == {"time": 0}


def test_a_url_with_more_than_the_address_is_refused(settings) -> None:
    with pytest.raises(Misconfigured, match="must have the form obs"):
        BackendBus("plugins", "obs+https://backend.example/?start=1")
    settings.BUS_BACKENDS = {"plugins": "obs+https:///"}
    assert [error.id for error in run_checks(tags=["builds"])] == ["tailrace_builds.E010"]

"""Webhook endpoints through the API, against a real server."""

from collections.abc import Iterator
from typing import Any

import pytest
from standardwebhooks import Webhook

from jobs.models import Job
from subscriptions import endpoints
from subscriptions.models import Endpoint
from tests.servers.web import Answer, Server, serving
from tests.subscriptions.api.kit import Program, problem, program
from tests.subscriptions.stage import FIRST, happen, hold, person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _local(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


@pytest.fixture
def ann() -> Program:
    found = program("ann", "endpoints")
    hold(FIRST, found.user)
    return found


def make(ann: Program, url: str) -> dict[str, Any]:
    answer = ann.post("/endpoints", {"url": url, "description": "mine"})
    assert answer.status_code == 201, answer.content
    made: dict[str, Any] = answer.json()
    assert answer["Location"] == f"/api/endpoints/{made['id']}"
    return made


def test_its_secret_is_shown_once_and_signs_what_is_sent(ann: Program, server, run_jobs) -> None:
    made = make(ann, f"{server.url}/in")
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert ann.get(f"/endpoints/{made['id']}").json() == made
    assert ann.all("/endpoints") == [made]
    assert (made["state"], made["description"], made["failing_since"]) == ("enabled", "mine", None)
    happen(payload={"title": "Faust"})
    run_jobs("subscriptions.notify", "subscriptions.webhook")
    (asked,) = server.asked
    assert Webhook(secret).verify(asked.body, asked.headers)["data"]["subject"] == "Faust"
    (tried,) = ann.all(f"/endpoints/{made['id']}/deliveries")
    assert (tried["outcome"], tried["attempt"], tried["status"]) == ("ok", 1, 200)
    assert tried["message_id"] == asked.headers["webhook-id"]


def test_an_address_that_nothing_may_be_sent_to_is_refused(ann: Program, settings) -> None:
    for url in ("ftp://example.org/", "", "https://user:pw@example.org/", "nonsense"):
        (fault,) = problem(ann.post("/endpoints", {"url": url}), 422, "invalid")["errors"]
        assert fault["pointer"] == "#/url"
    assert not Endpoint.objects.exists()


def test_it_is_changed_and_deleted(ann: Program, server) -> None:
    made = make(ann, server.url)
    path = f"/endpoints/{made['id']}"
    assert ann.patch(path, {"description": "ours"}).json()["description"] == "ours"
    assert ann.patch(path, {"url": f"{server.url}/b"}).json()["url"] == f"{server.url}/b"
    assert ann.get(path).json()["description"] == "ours"
    problem(ann.patch(path, {"url": "ftp://x"}), 422, "invalid")
    problem(ann.patch(path, {"state": "enabled"}), 422, "invalid")
    assert ann.delete(path).status_code == 204
    problem(ann.get(path), 404)


def test_it_is_paused_resumed_disabled_and_enabled(ann: Program, server) -> None:
    made = make(ann, server.url)

    def do(verb: str) -> Any:
        return ann.post(f"/endpoints/{made['id']}/{verb}")

    paused = do("pause").json()
    assert (paused["state"], paused["reason"]) == ("paused", "paused by ann")
    assert "is paused, not enabled" in problem(do("pause"), 409)["detail"]
    assert do("resume").json()["state"] == "enabled"
    assert do("disable").json()["state"] == "disabled"
    problem(do("resume"), 409)
    assert do("enable").json()["state"] == "enabled"


def test_a_rotated_secret_is_another(ann: Program, server) -> None:
    made = make(ann, server.url)
    rotated = ann.post(f"/endpoints/{made['id']}/rotate").json()["secret"]
    assert rotated.startswith("whsec_")
    assert rotated != made["secret"]


def test_a_test_is_sent_here_and_now(ann: Program, server) -> None:
    made = make(ann, server.url)
    tried = ann.post(f"/endpoints/{made['id']}/test").json()
    assert (tried["outcome"], tried["event_id"]) == ("ok", None)
    assert Webhook(made["secret"]).verify(server.asked[0].body, server.asked[0].headers)
    while (answer := ann.post(f"/endpoints/{made['id']}/test")).status_code == 200:
        assert len(server.asked) <= endpoints.TESTS_AT_ONCE
    assert "too many tests" in problem(answer, 409)["detail"]


def test_what_failed_is_delivered_once_more(ann: Program, server, run_jobs, clock) -> None:
    made = make(ann, server.url)
    server.respond = lambda asked: Answer(404)
    happen()
    while True:
        run_jobs("subscriptions.notify", "subscriptions.webhook")
        job = Job.objects.get(handler="subscriptions.webhook")
        if job.state == "failed":
            break
        clock.step(7200)
    tried = ann.all(f"/endpoints/{made['id']}/deliveries", limit=1)
    assert len(tried) == len(server.asked) > 0
    server.respond = lambda asked: Answer(204)
    again = f"/endpoints/{made['id']}/deliveries/{tried[0]['id']}/replay"
    answer = ann.post(again)
    assert answer.status_code == 202
    assert answer.json() == {"job": job.pk}
    run_jobs("subscriptions.webhook")
    ids = {one.headers["webhook-id"] for one in server.asked}
    assert len(ids) == 1, "the same webhook-id each time"
    assert ann.all(f"/endpoints/{made['id']}/deliveries")[0]["outcome"] == "ok"
    problem(ann.post(again), 409)
    problem(ann.post(f"/endpoints/{made['id']}/deliveries/0/replay"), 404)


def test_those_of_others_are_out_of_reach(ann: Program, server) -> None:
    theirs, _ = endpoints.create(person("bob"), server.url)
    tried = endpoints.test_delivery(theirs)
    base = f"/endpoints/{theirs.pk}"
    for answer in (
        ann.get(base),
        ann.patch(base, {"url": server.url}),
        ann.delete(base),
        ann.get(f"{base}/deliveries"),
        ann.post(f"{base}/deliveries/{tried.pk}/replay"),
        *(ann.post(f"{base}/{verb}") for verb in (
            "pause", "resume", "enable", "disable", "rotate", "test",
        )),
    ):  # fmt: skip
        problem(answer, 404)
    assert ann.all("/endpoints") == []
    own = make(ann, server.url)
    problem(ann.post(f"/endpoints/{own['id']}/deliveries/{tried.pk}/replay"), 404)


def test_a_user_has_a_bounded_number_of_them(ann: Program, server, monkeypatch) -> None:
    monkeypatch.setattr(endpoints, "MOST", 1)
    make(ann, server.url)
    problem(ann.post("/endpoints", {"url": server.url}), 409, "too-many")

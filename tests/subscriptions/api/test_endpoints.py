"""Webhook endpoints by the API, with a real server."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, get_args

import pytest
from standardwebhooks import Webhook

from tailrace.db.query import database_now
from tailrace.jobs.models import Job
from tailrace.subscriptions.channels.webhook.history import message_list
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Endpoint
from tests.servers.web import Response, Server, serving
from tests.subscriptions.channels.webhook.kit import TEST, sent_test
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _local(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as result:
        yield result


@pytest.fixture
def ann() -> Program:
    result = program("ann", "endpoints")
    assign_role(FIRST, result.user)
    return result


def make(ann: Program, url: str) -> dict[str, Any]:
    answer = ann.post("/endpoints", {"url": url, "description": "mine"})
    assert answer.status_code == 201, answer.content
    created: dict[str, Any] = answer.json()
    assert answer["Location"] == f"/api/endpoints/{created['id']}"
    return created


def test_its_secret_is_shown_once_and_signs_what_is_sent(ann: Program, server, run_jobs) -> None:
    created = make(ann, f"{server.url}/in")
    secret = created.pop("secret")
    assert secret.startswith("whsec_")
    assert ann.get(f"/endpoints/{created['id']}").json() == created
    assert ann.all("/endpoints") == [created]
    assert (created["state"], created["description"], created["failing_since"]) == (
        "enabled",
        "mine",
        None,
    )
    publish_event(payload={"title": "Faust"})
    run_jobs("subscriptions.notify", "subscriptions.webhook")
    (request,) = server.requests
    assert Webhook(secret).verify(request.body, request.headers)["data"]["subject"] == "Faust"
    (tried,) = ann.all(f"/endpoints/{created['id']}/deliveries")
    assert (tried["outcome"], tried["attempt"], tried["status"]) == ("ok", 1, 200)
    assert tried["message_id"] == request.headers["webhook-id"]


def test_a_private_address_is_refused(ann: Program, settings) -> None:
    for url in ("ftp://example.org/", "", "https://user:pw@example.org/", "nonsense"):
        (fault,) = problem(ann.post("/endpoints", {"url": url}), 422, "invalid")["errors"]
        assert fault["pointer"] == "#/url"
    assert not Endpoint.objects.exists()


def test_it_is_changed_and_deleted(ann: Program, server) -> None:
    created = make(ann, server.url)
    path = f"/endpoints/{created['id']}"
    assert ann.patch(path, {"description": "ours"}).json()["description"] == "ours"
    assert ann.patch(path, {"url": f"{server.url}/b"}).json()["url"] == f"{server.url}/b"
    assert ann.get(path).json()["description"] == "ours"
    problem(ann.patch(path, {"url": "ftp://x"}), 422, "invalid")
    problem(ann.patch(path, {"state": "enabled"}), 422, "invalid")
    assert ann.delete(path).status_code == 204
    problem(ann.get(path), 404)


def test_it_is_paused_resumed_disabled_and_enabled(ann: Program, server) -> None:
    created = make(ann, server.url)

    def do(verb: str) -> Any:
        return ann.post(f"/endpoints/{created['id']}/{verb}")

    paused = do("pause").json()
    assert (paused["state"], paused["reason"]) == ("paused", "paused by ann")
    assert "is paused, not enabled" in problem(do("pause"), 409)["detail"]
    assert do("resume").json()["state"] == "enabled"
    assert do("disable").json()["state"] == "disabled"
    problem(do("resume"), 409)
    assert do("enable").json()["state"] == "enabled"


def test_a_rotated_secret_is_another(ann: Program, server) -> None:
    created = make(ann, server.url)
    rotated = ann.post(f"/endpoints/{created['id']}/rotate").json()["secret"]
    assert rotated.startswith("whsec_")
    assert rotated != created["secret"]


def test_a_test_delivery_has_a_result_when_it_was_sent(
    ann: Program, server, run_jobs, settings
) -> None:
    created = make(ann, server.url)
    answer = ann.post(f"/endpoints/{created['id']}/test")
    where = answer["Location"].removeprefix("/api")
    assert (answer.status_code, answer.json()["delivery"]) == (202, None)
    assert ann.get(where).json() == answer.json()
    run_jobs(TEST)
    result = ann.get(where).json()
    assert result["done"]
    assert (result["delivery"]["outcome"], result["delivery"]["event_id"]) == ("ok", None)
    problem(ann.get(f"/endpoints/{created['id']}/tests/1"), 404)
    problem(program("bob").get(where), 404)
    assert Webhook(created["secret"]).verify(server.requests[0].body, server.requests[0].headers)
    jobs = Job.objects.filter(handler=TEST)
    while (answer := ann.post(f"/endpoints/{created['id']}/test")).status_code == 202:
        assert jobs.count() <= endpoints.TEST_BURST
    assert "too many tests" in problem(answer, 429, "rate-limited")["detail"]
    assert int(answer["Retry-After"]) >= 1
    settings.WEBHOOK_CONFIRM = True
    problem(ann.post(f"/endpoints/{created['id']}/confirm"), 429, "rate-limited")


def test_a_failed_delivery_is_replayed(ann: Program, server, run_jobs, clock) -> None:
    created = make(ann, server.url)
    server.respond = lambda request: Response(404)
    publish_event()
    while True:
        run_jobs("subscriptions.notify", "subscriptions.webhook")
        job = Job.objects.get(handler="subscriptions.webhook")
        if job.state == "failed":
            break
        clock.step(7200)
    tried = ann.all(f"/endpoints/{created['id']}/deliveries", limit=1)
    assert len(tried) == len(server.requests) > 0
    server.respond = lambda request: Response(204)
    again = f"/endpoints/{created['id']}/deliveries/{tried[0]['id']}/replay"
    answer = ann.post(again)
    assert answer.status_code == 202
    assert answer.json() == {"job": job.pk}
    run_jobs("subscriptions.webhook")
    ids = {request.headers["webhook-id"] for request in server.requests}
    assert len(ids) == 1, "the same webhook-id each time"
    assert ann.all(f"/endpoints/{created['id']}/deliveries")[0]["outcome"] == "ok"
    problem(ann.post(again), 409)
    problem(ann.post(f"/endpoints/{created['id']}/deliveries/0/replay"), 404)


def test_messages_are_read_and_sent_again(ann: Program, server, run_jobs) -> None:
    path = f"/endpoints/{make(ann, f'{server.url}/in')['id']}"
    server.respond = lambda request: Response(302)
    publish_event(payload={"title": "Faust"})
    run_jobs("subscriptions.notify", "subscriptions.webhook")
    (message,) = ann.all(f"{path}/messages")
    assert (message["state"], message["event_type"]) == ("failed", "stage.premiere")
    assert message["title"].endswith("Faust")
    assert "302" in message["reason"]
    details = ann.get(f"{path}/messages/{message['id']}").json()
    assert details == message | {"body": details["body"], "tries": details["tries"]}
    assert json.loads(details["body"])["data"]["subject"] == "Faust"
    assert [(row["attempt"], row["status"]) for row in details["tries"]] == [(1, 302)]
    server.respond = lambda request: Response()
    again = ann.post(f"{path}/messages/{message['id']}/resend")
    assert (again.status_code, again.json()["state"]) == (202, "waiting")
    run_jobs("subscriptions.webhook")
    assert ann.get(f"{path}/messages/{message['id']}").json()["state"] == "delivered"
    assert len({request.headers["webhook-id"] for request in server.requests}) == 1


def test_messages_are_listed_by_what_became_of_them(
    ann: Program, server, run_jobs, monkeypatch
) -> None:
    path = f"/endpoints/{make(ann, f'{server.url}/in')['id']}"
    replies = iter([200, 302])
    server.respond = lambda request: Response(next(replies))
    for title in ("Faust", "Hamlet"):
        publish_event(payload={"title": title})
        run_jobs("subscriptions.notify", "subscriptions.webhook")
    ann.post(f"{path}/pause")
    for title in ("Macbeth", "Tartuffe"):
        publish_event(payload={"title": title})
    run_jobs("subscriptions.notify", "subscriptions.webhook")

    def titles(**query: Any) -> list[str]:
        return [row["title"].split()[-1] for row in ann.all(f"{path}/messages", **query)]

    everything = ["Tartuffe", "Macbeth", "Hamlet", "Faust"]
    assert titles() == titles(limit=1) == titles(limit=4) == everything
    assert titles(list="waiting") == titles(list="waiting", limit=1) == ["Tartuffe", "Macbeth"]
    assert titles(list="failed") == ["Hamlet"]
    assert titles(list="delivered") == ["Faust"]
    monkeypatch.setattr(message_list, "MAX_EXAMINED", 1)
    monkeypatch.setattr(message_list, "CHUNK", 1)
    page = ann.get(f"{path}/messages", list="delivered").json()
    assert page["items"] == []
    assert page["next"] is not None
    assert titles(list="delivered") == ["Faust"]


@pytest.mark.parametrize("name", ["", "lost", "cancelled", "Failed"])
def test_a_list_of_messages_that_there_is_not(ann: Program, server, name: str) -> None:
    path = f"/endpoints/{make(ann, server.url)['id']}/messages"
    (fault,) = problem(ann.get(path, list=name), 422, "invalid")["errors"]
    assert fault["parameter"] == "list"
    assert "'waiting', 'delivered' or 'failed'" in fault["detail"]


def test_each_list_of_the_page_is_one_of_the_api() -> None:
    assert get_args(message_list.ListName) == tuple(message_list.LISTS)


def test_a_list_of_messages_counts_as_five_requests(ann: Program, server, settings) -> None:
    path = f"/endpoints/{make(ann, server.url)['id']}/messages"
    settings.API_RATE, settings.API_BURST = 0.001, 30

    def left(**query: Any) -> int:
        (number,) = re.findall(r"r=(\d+)", ann.get(path, **query)["RateLimit"])
        return int(number)

    before = left()
    assert left() == before - 1
    left(list="failed")
    assert left() == before - 7


def test_a_recovery_is_started_and_followed(ann: Program, server, run_jobs) -> None:
    publish_event(payload={"title": "Faust"})
    run_jobs("subscriptions.notify")
    path = f"/endpoints/{make(ann, f'{server.url}/in')['id']}"
    body = {"what": "missing", "since": (database_now() - timedelta(hours=1)).isoformat()}
    started = ann.post(f"{path}/recover", body)
    assert (started.status_code, started.json()["state"]) == (202, "pending")
    assert started["Location"] == f"/api{path}/recoveries/{started.json()['job']}"
    problem(ann.post(f"{path}/recover", body), 409)
    run_jobs("subscriptions.webhook_recovery")
    result = ann.client.get(started["Location"]).json()
    assert result["state"] == "completed"
    assert (result["sent"], result["whole"]) == (1, True)
    too_old = body | {"since": "2020-01-01T00:00:00Z"}
    assert "within the last 30 days" in problem(ann.post(f"{path}/recover", too_old), 409)["detail"]


def test_a_sample_is_of_a_type_that_is_sent(ann: Program) -> None:
    sample = ann.get("/endpoints/samples", event_type="stage.gala").json()
    assert json.loads(sample["body"])["type"] == "stage.gala"
    assert ann.get("/endpoints/samples", event_type="stage.silence").status_code == 404


def test_rows_of_other_users_are_not_found(ann: Program, server) -> None:
    theirs, _ = endpoints.create(person("bob"), server.url)
    tried = sent_test(theirs)
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


def test_the_number_per_user_is_limited(ann: Program, server, monkeypatch) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 1)
    make(ann, server.url)
    problem(ann.post("/endpoints", {"url": server.url}), 409, "too-many")

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tailrace.domains.builds.backends.metadata import MetadataClient
from tailrace.domains.builds.backends.releases import Changes, release
from tailrace.domains.builds.models import Binary
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming.claim import Limits, claim
from tailrace.jobs.models import Job
from tests.servers.source import PAYLOAD_KEY, Source, source
from tests.servers.web import Response

pytestmark = pytest.mark.django_db(transaction=True)
RELEASED = "builds.update_released_binaries"


@pytest.fixture
def server(settings) -> Iterator[Source]:
    with source() as server:
        settings.OBS_BACKENDS = {"main": server.url}
        settings.OBS_TIMEOUT_SECONDS = 30
        settings.OBS_NOPRUNE = False
        yield server


def packtrack(key: str = PAYLOAD_KEY, repo: str = "standard") -> Recorded:
    payload = {"project": "home:alice", "repo": repo, "payload": key}
    return publish([NewEvent("builds.packtrack", payload, source="obs:main:1")])[0]


def job_of(event: Recorded) -> Job:
    return Job.objects.get(handler=RELEASED, event=event.id)


def binary(name: str, id: str = "1", **more: Any) -> dict[str, Any]:
    return {"name": name, "version": "2.0", "release": "1", "binaryarch": "x86_64",
            "binaryid": id} | more  # fmt: skip


def test_a_captured_payload_becomes_a_binary_and_is_deleted(
    server: Source, run_jobs: Callable
) -> None:
    event = packtrack()
    run_jobs(RELEASED)
    binary = Binary.objects.get()
    assert (binary.project, binary.repository, str(binary)) == (
        "home:alice", "standard", "hello-2.0-1.1.x86_64")  # fmt: skip
    assert (binary.package, binary.binaryid, binary.operation) == ("hello", "deadbeef", "added")
    assert binary.buildtime == datetime.fromtimestamp(1700000360, UTC)
    assert binary.disturl == "obs://x/home:alice/standard/d41-hello"
    assert job_of(event).result == {"added": 1, "modified": 0, "obsolete": 0, "unchanged": 0}
    assert server.requests[-1] == f"DELETE /notificationpayload/{PAYLOAD_KEY}"


def test_beside_a_frontend_the_payload_stays_for_its_own_job(
    server: Source, run_jobs: Callable, settings: Any
) -> None:
    settings.OBS_NOPRUNE = True
    event = packtrack()
    run_jobs(RELEASED)
    assert job_of(event).result["added"] == 1
    assert server.requests == [f"GET /notificationpayload/{PAYLOAD_KEY}"]


def test_without_the_right_to_delete_the_release_is_stored(
    server: Source, run_jobs: Callable, caplog: Any
) -> None:
    server.read_only = True
    event = packtrack()
    run_jobs(RELEASED)
    assert job_of(event).state == "completed"
    assert Binary.objects.count() == 1
    assert server.requests[-1].startswith("DELETE")
    assert "releases.payload_not_deleted" in caplog.text
    assert "answered 500: no permission" in caplog.text


def test_a_release_adds_modifies_and_makes_obsolete(server: Source, run_jobs: Callable) -> None:
    server.payload("k1", [binary("same"), binary("other", "1"), binary("leaves")])
    first = packtrack("k1")
    run_jobs(RELEASED)
    server.payload("k2", [binary("same"), binary("other", "2"), binary("comes")])
    second = packtrack("k2")
    run_jobs(RELEASED)
    assert job_of(second).result == {"added": 1, "modified": 1, "obsolete": 1, "unchanged": 1}
    assert set(Binary.objects.current().values_list("name", "binaryid", "operation")) == {
        ("same", "1", "added"), ("other", "2", "modified"), ("comes", "1", "added")}  # fmt: skip
    old = Binary.objects.get(name="other", binaryid="1")
    assert (old.modified_at, old.released_at) == (second.occurred_at, first.occurred_at)
    assert Binary.objects.get(name="leaves").obsolete_at == second.occurred_at


def test_released_twice_the_second_changes_nothing() -> None:
    items = [binary("a"), binary("b"), binary("b")]
    when = datetime(2026, 1, 1, tzinfo=UTC)
    assert release("main", "p", "r", items, when) == Changes(2, 0, 0, 0)
    assert release("main", "p", "r", items, when) == Changes(0, 0, 0, 2)
    assert release("main", "p", "other", items, when) == Changes(2, 0, 0, 0)
    assert Binary.objects.count() == 4


def test_a_crash_before_the_delete_repeats_without_effect(
    server: Source, run_jobs: Callable
) -> None:
    event = packtrack()
    with MetadataClient("main") as client:
        items = client.notification_payload(PAYLOAD_KEY)
    release("main", "home:alice", "standard", items, event.occurred_at)  # and here it dies
    run_jobs(RELEASED)
    assert Binary.objects.count() == 1
    assert job_of(event).result["unchanged"] == 1
    assert f"/notificationpayload/{PAYLOAD_KEY}" not in server.pages


def test_a_payload_that_is_gone_is_skipped(server: Source, run_jobs: Callable) -> None:
    event = packtrack("no-such-key")
    run_jobs(RELEASED)
    assert (job_of(event).state, job_of(event).error) == (
        "skipped", "the payload no longer exists: it was handled before")  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        Response(502, b"<html>"),
        Response(200, b'[{"name": "a"'),
        Response(200, b'{"name": "a"}'),
        Response(200, b'[{"name": "a"}]' + b" " * 100, cut=9),
    ],
    ids=["502", "half", "no array", "cut"],
)
def test_a_bad_answer_is_tried_again_and_the_payload_stays(
    server: Source, run_jobs: Callable, answer: Response
) -> None:
    server.pages["/notificationpayload/k"] = answer
    event = packtrack("k")
    run_jobs(RELEASED)
    assert job_of(event).state == "pending"
    assert not Binary.objects.exists()
    assert not any(request.startswith("DELETE") for request in server.requests)


def test_releases_of_one_repository_run_one_after_another(server: Source) -> None:
    for repo in ("one", "one", "two"):
        packtrack(repo=repo)
    lanes = [job.lane for job in claim(registry.get(RELEASED), Limits(), 100)]
    assert sorted(lanes) == ["main:home:alice/one", "main:home:alice/two"]


def test_a_name_with_a_path_is_never_requested(server: Source, run_jobs: Callable) -> None:
    event = packtrack("../source/home:alice")
    run_jobs(RELEASED)
    assert job_of(event).state == "skipped"
    assert server.requests == []

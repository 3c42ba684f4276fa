"""Pages and entries of any size: read in parts, with a bound on what is held in memory."""

import json
import tracemalloc

import pytest

from tailrace.domains.builds.models import Poller
from tailrace.domains.builds.sources.page_parser import PageParser
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tests.kit import PATIENCE, wait_until
from tests.servers import backend as servers

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 200_000
COMMIT = {"project": "p", "package": "q", "user": "u", "rev": "1"}


@pytest.fixture(autouse=True)
def small_limit(settings):
    settings.OBS_PAGE_LIMIT_BYTES = LIMIT


def commit(backend, size):
    backend.notify("SRCSRV_COMMIT", COMMIT | {"comment": "é\n" * (size // 2)})


def numbers():
    events = Event.objects.filter(type="builds.commit").order_by("id")
    return [int(event.source_id) for event in events]


@pytest.mark.parametrize("view", ["json", "xml"])
def test_a_page_of_many_megabytes_is_read_in_parts_by_one_request(
    backend, poll, poller, settings, view
):
    settings.OBS_VIEW = view
    for _ in range(100):
        commit(backend, 20_000)
    job = poll()
    assert job.result["events"] == 100
    assert numbers() == list(range(1, 101))
    assert not Event.objects.flagged().exists()
    assert poller().next_number == 101
    assert len([read for read in backend.reads if "noprune" in read and "start" in read]) == 2


@pytest.mark.parametrize("view", ["json", "xml"])
def test_an_entry_that_is_too_big_is_cut_and_flagged(backend, poll, poller, settings, view):
    settings.OBS_VIEW = view
    commit(backend, 10)
    commit(backend, 3 * LIMIT)
    backend.notify("NO_SUCH_EVENT", {"text": '"\\{}[]' * LIMIT, "other": "kept"})
    commit(backend, 10)
    poll()
    poll()
    assert numbers() == [1, 2, 4]
    commits, unknown = Event.objects.filter(type="builds.commit"), Event.objects.get(source_id="3")
    big = commits.get(source_id="2")
    assert "too big; these values were cut: comment" in big.problem
    assert big.payload["comment"].startswith("é\né\n" if view == "xml" else ("é\n", "Ã©\n"))
    assert len(big.payload["comment"]) < 1100
    assert (big.payload["project"], big.payload["user"]) == ("p", "u")
    assert unknown.type == "builds.unknown"
    assert unknown.payload["data"]["other"] == "kept"
    assert unknown.payload["data"]["text"].startswith('"\\{}[]"')
    assert poller().next_number == 5
    assert poller().epoch == 1
    assert set(commits.flagged()) == {big}


def test_entries_that_came_before_the_end_of_a_connection_are_kept(backend, poll, poller, clock):
    commit(backend, 10)
    poll()
    for _ in range(10):
        commit(backend, 2000)
    backend.faults.append(servers.cut)
    poll()
    assert "RemoteProtocolError" in poller().error
    assert 4 <= poller().next_number <= 7
    assert numbers() == list(range(1, poller().next_number))
    clock.step(30)
    poll()
    assert numbers() == list(range(1, 12))


def test_a_page_that_is_slow_is_read_as_far_as_it_comes(backend, poll, poller, settings, clock):
    settings.OBS_TIMEOUT_SECONDS = 1

    def slow(connection, response):
        connection.write(servers.Response(response.body[:-2], headers={"Content-Length": "9999"}))
        servers.dripping_on(connection)

    for _ in range(5):
        commit(backend, 10)
    poll()
    commit(backend, 10)
    backend.faults.append(slow)
    poll()
    assert "was still sending after 1 s" in poller().error
    assert poller().next_number == 7
    clock.step(30)
    poll()
    assert numbers() == list(range(1, 7))


def test_killed_between_two_parts_loses_and_doubles_nothing(
    backend, poll, poller, another_process, clock
):
    for _ in range(40):
        commit(backend, 20_000)

    def stops_in_the_middle(connection, response):
        length = {"Content-Length": str(len(response.body))}
        half = response.body[: len(response.body) // 2]
        connection.write(servers.Response(half, headers=length))
        connection.wfile.flush()
        connection.server.stopping.wait(30)

    backend.faults.extend([lambda c, r: c.write(r)] * 2 + [stops_in_the_middle])
    process = another_process(OBS_PAGE_LIMIT_BYTES="1048576")
    wait_until(
        lambda: Poller.objects.filter(next_number__gt=1).exists(), what="the first part is recorded"
    )
    process.kill()
    process.wait(PATIENCE)
    assert poller().next_number < 40
    clock.step(60)
    poll()
    assert numbers() == list(range(1, 41))
    assert Job.objects.filter(handler="builds.notify_backend").count() == 40


@pytest.mark.parametrize("is_one_entry", [True, False])
def test_little_of_a_page_is_held_in_memory(is_one_entry):
    entry = json.dumps({"type": "X", "time": "1", "data": {"a": "b" * 900}}).encode() + b","
    blocks = [b"x" * 65536] * 300 if is_one_entry else [entry * 65] * 300
    parser = PageParser(1, LIMIT)
    parser.feed(b'{"notification":[')
    if is_one_entry:
        parser.feed(b'{"data":{"text":"')
    tracemalloc.start()
    try:
        for block in blocks:  # 19 MB
            parser.feed(block)
            if parser.is_full:
                parser.part()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * LIMIT

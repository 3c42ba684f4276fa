"""A backend that misbehaves: a clear error on its poller, the cursor left, nothing lost."""

import random
import socket
import string

import pytest

from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import State
from tests.servers import backend as servers

pytestmark = pytest.mark.django_db(transaction=True)

FAULTS = {
    "times out": (servers.silent, "sent nothing for 1 s"),
    "stops in the middle": (servers.stuck, "stopped in the middle of an answer"),
    "drips": (servers.dripping, "was still sending after 1 s"),
    "cuts the body": (servers.cut, "RemoteProtocolError"),
    "cuts the body unseen": (servers.cut_unseen, "sent an incomplete or unreadable page in JSON"),
    "ends the connection": (servers.gone, "RemoteProtocolError"),
    "sends HTML": (servers.html, "sent HTML instead of a page in JSON"),
    "sends nothing": (servers.instead(lambda body: b""), "sent an empty answer"),
    "answers 500": (servers.says(500, b"<summary>no disk</summary>"), "answered 500: no disk"),
    "answers 503": (servers.says(503), "answered 503: Service Unavailable"),
    "answers 404": (servers.says(404), "answered 404"),
    "redirects": (servers.says(302), "answered 302"),
    "sends a list": (servers.instead(lambda body: b"[]"), "an invalid page: not a JSON object"),
    "sends no next": (servers.instead(lambda body: b"{}"), "it has no `next`"),
    "sends next in words": (servers.instead(lambda body: b'{"next":"soon"}'), "`next` is 'soon'"),
    "sends next below 1": (servers.instead(lambda body: b'{"next":-4}'), "`next` is -4"),
    "sends a huge number": (
        servers.instead(lambda body: b'{"next":' + b"9" * 5000 + b"}"),
        "sent an incomplete or unreadable page in JSON",
    ),
    "nests without end": (
        servers.instead(lambda body: b'{"next":6,"notification":[' + b"[" * 200_000),
        "sent an incomplete or unreadable page in JSON",
    ),
    "sends an inconsistent page": (
        servers.instead(lambda body: b'{"next":900,"notification":[]}'),
        "an inconsistent page: from 3, next 900, with 0 entries",
    ),
    "sends notifications of no kind": (
        servers.instead(lambda body: b'{"next":6,"notification":{"a":1}}'),
        "`notification` is not a list",
    ),
    "compresses": (
        lambda connection, response: connection.write(
            servers.replace(response, headers={"Content-Encoding": "gzip"})
        ),
        "compressed its answer",
    ),
}


ENDLESS = ("times out", "stops in the middle", "drips")
"""Faults that only the timeout ends."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_backend_that(fault, backend, poll, poller, settings, clock):
    settings.OBS_TIMEOUT_SECONDS = 30
    settings.OBS_PAGE_LIMIT_BYTES = 200_000
    backend.add(3)
    poll()
    backend.add(2)
    goes_wrong, words = FAULTS[fault]
    backend.faults.append(goes_wrong)
    if fault in ENDLESS:
        settings.OBS_TIMEOUT_SECONDS = 1
    job = poll()
    settings.OBS_TIMEOUT_SECONDS = 30
    assert words in poller().error
    assert poller().errors_in_row == 1
    # What stops in the middle has sent its entries before.
    assert poller().next_number == (6 if fault == "stops in the middle" else 4)
    assert poller().lease_holder == ""
    assert job.state == State.PENDING
    assert words in job.attempts.get().message
    clock.step(30)
    poll()
    assert Event.objects.count() == 5
    assert not Event.objects.flagged().exists()
    assert poller().error == ""
    assert poller().errors_in_row == 0


def test_a_backend_that_refuses(poll, poller, settings):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings.OBS_BACKENDS = {"main": f"http://me:secret@127.0.0.1:{taken.getsockname()[1]}"}
        poll()
    assert "ConnectError" in poller().error
    assert "secret" not in poller().error
    assert poller().next_number is None


def test_the_wait_doubles_up_to_five_minutes_and_no_more(backend, poll, poller, clock):
    waits = []
    for _ in range(8):
        backend.faults.append(servers.says(503))
        poll()
        waits.append(round((poller().backoff_until - clock.now()).total_seconds()))
        clock.step(301)
    assert waits == pytest.approx([17, 34, 68, 136, 272, 300, 300, 300], abs=8)
    assert poller().errors_in_row == 8


def test_during_the_backoff_no_request_is_sent(backend, poll):
    backend.faults.append(servers.says(503))
    poll()
    requests = len(backend.requests)
    other = poll()
    assert other.state == State.SKIPPED
    assert "not read until" in other.error
    assert len(backend.requests) == requests


def test_a_name_too_long_for_an_index_does_not_stop_the_page(backend, poll):
    endless = "".join(random.Random(1).choices(string.ascii_letters, k=9000))
    backend.notify("SRCSRV_COMMIT", {"project": endless, "package": "q", "rev": "1"})
    backend.notify("SRCSRV_COMMIT", {"project": "p", "package": "q", "rev": "1"})
    poll()
    assert Event.objects.filter(type="builds.commit").count() == 2
    job = Job.objects.get(handler="builds.update_backend_infos", state=State.FAILED)
    assert job.event.payload["project"] == endless
    assert "lane has 9007 characters; at most 600 are allowed" in job.error


def test_ill_formed_xml_is_read_as_json(backend, poll, settings):
    settings.OBS_VIEW = "xml"
    backend.notify("BUILD_FAIL", {"project": "p", "package": "q", "reason": "a\x01b"})
    backend.add(2)
    poll()
    assert Event.objects.count() == 3
    assert Event.objects.get(source_id="1").payload["reason"] == "a\x01b"
    assert [read.get("view") for read in backend.reads[-2:]] == [None, "json"]


def test_xml_that_tries_to_expand_is_read_as_json(backend, poll, settings):
    settings.OBS_VIEW = "xml"
    backend.add(1)
    poll()
    backend.add(1)
    bomb = b'<!DOCTYPE n [<!ENTITY a "xxxxx">]><notifications next="3">&a;</notifications>'
    backend.faults.append(servers.instead(lambda body: bomb))
    poll()
    assert Event.objects.count() == 2


def test_nul_and_half_characters_are_replaced_and_flagged(backend, poll):
    backend.notify("SRCSRV_COMMIT", {"project": "p", "package": "q\0", "user": "\ud83d"})
    poll()
    event = Event.objects.get()
    assert event.type == "builds.commit"
    assert event.payload["package"] == "q\ufffd"
    assert "characters" in event.problem


def test_a_malformed_notification_is_recorded_unchanged(backend, poll, poller):
    backend.add(4)
    body = (
        b'{"next":5,"notification":[7,{"data":{}},{"type":"BUILD_FAIL","data":["x"],"time":"x"},'
        b'{"type":"REPO_PUBLISHED","data":{"project":{"deep":1},"repo":"r"},"time":1e99}]}'
    )
    # The first contact asks for the log's end, then for its first number, then reads.
    backend.faults.extend([lambda c, r: c.write(r)] * 2 + [servers.instead(lambda _: body)])
    poll()
    types = list(Event.objects.order_by("id").values_list("type", flat=True))
    assert types == ["builds.unknown"] * 3 + ["events.quarantined"]
    assert Event.objects.flagged().count() == 4
    assert poller().next_number == 5


def test_a_log_that_changes_during_the_search_is_searched_again(backend, poll, poller, clock):
    backend.add(3000)
    poll()
    backend.add(3000)
    backend.log.prune_below(5000)
    backend.faults.extend(
        [lambda c, r: c.write(r), servers.instead(lambda _: b'{"next":1,"notification":[]}')]
    )
    poll()
    assert "changed during the search" in poller().error
    clock.step(30)
    poll()
    assert poller().next_number == 6001
    assert Event.objects.get(type="builds.sync_lost").payload["to"] == 5000

"""The sample backend answers as the real one did when it was captured."""

import json
import os
import signal
import subprocess
import sys
import threading
from itertools import islice
from pathlib import Path

import httpx
import pytest

from tailrace.domains.builds.event_types.catalogue import by_raw_type
from tailrace.samples.builds.activity import (
    ODD_ROUND_EVERY,
    activity,
    captured_notifications,
    rounds_of,
)
from tailrace.samples.builds.log import NotificationLog
from tests.kit import ROOT, wait_until
from tests.servers import backend as servers

OBS = Path(__file__).parents[2] / "data" / "obs"
COMMAND = (sys.executable, "-m", "tailrace.samples", "backend")


def environment(var: Path) -> dict[str, str]:
    """Variables of a process that writes to a folder of its own and has no database."""
    return os.environ | {
        "TAILRACE_VAR": str(var),
        "PYTHONPATH": str(ROOT / "src"),
        "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
    }


def capture(name):
    return (OBS / f"{name}.body").read_text()


def replayed():
    """The captured notifications: type, values and time."""
    log = []
    for entry in json.loads(capture("11-all-from-1-json"))["notification"]:
        values = {key: _single(value) for key, value in entry["data"].items()}
        log.append((entry["type"], values, int(entry["time"])))
    return log


def _single(text):
    return text.encode("latin-1").decode() if "Ã" in text else text


@pytest.fixture
def backend():
    with servers.running() as running:
        for type, values, at in replayed():
            running.log.append(type, values, at)
        yield running


@pytest.fixture
def get(backend):
    def request(path):
        return httpx.get(backend.url + path, timeout=60, trust_env=False)

    return request


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("?start=1", "10-all-from-1"),
        ("", "12-nostart"),
        ("?start=0", "13-start0"),
        ("?start=38", "14-start-eq-next"),
        ("?start=5038", "15-start-far-beyond"),
        ("?start=37", "16-last-one"),
    ],
)
def test_pages_are_those_of_the_capture_to_the_letter(get, query, name):
    assert get(f"/lastnotifications{query}").text == capture(name)


def test_json_is_that_of_the_capture_double_encoding_included(get):
    answer = get("/lastnotifications?start=1&view=json")
    assert answer.json() == json.loads(capture("11-all-from-1-json"))
    assert "Ã©" in answer.text


@pytest.mark.parametrize(
    ("query", "summary"),
    [
        ("start=abc", "not a number: 'abc'"),
        ("start=-1", "not a number: '-1'"),
        ("start=1&notification_limit=5", "unknown parameter 'notification_limit'"),
        ("start=1&view=foo", "unsupported view"),
    ],
)
def test_what_it_cannot_answer_is_a_400(get, query, summary):
    answer = get(f"/lastnotifications?{query}")
    assert answer.status_code == 400
    assert f"<summary>{summary}</summary>" in answer.text


def test_reading_far_ahead_prunes_unless_noprune_is_set(backend, get):
    backend.add(2302)
    limited = get("/lastnotifications?start=1&noprune=1&view=json").json()
    assert (limited["next"], limited["limit_reached"]) == (1001, "1")
    assert len(limited["notification"]) == 1000
    get("/lastnotifications?start=2001&noprune=1")
    assert backend.log.first == 1
    get("/lastnotifications?start=2001")
    assert get("/lastnotifications?start=1").text == capture("43-sync-lost")
    assert get("/lastnotifications?start=1&view=json").json() == json.loads(
        capture("44-sync-lost-json")
    )
    assert get("/lastnotifications?start=1500").text == capture("46-just-pruned")
    assert len(get("/lastnotifications?start=1501&view=json").json()["notification"]) == 839


@pytest.mark.parametrize("start", [38, 39])
def test_a_blocking_read_waits_for_its_number_and_forgets_the_view(backend, get, start):
    answers = []
    path = f"/lastnotifications?start={start}&block=1&view=json"
    reader = threading.Thread(target=lambda: answers.append(get(path).text))
    reader.start()
    wait_until(lambda: any("block" in read for read in backend.reads))
    for _ in range(start - 37):
        assert not answers
        httpx.post(f"{backend.url}/notify/REPO_PUBLISHED?project=p&repo=r", trust_env=False)
    reader.join(300)
    assert answers[0].startswith(f'<notifications next="{start + 1}">')
    assert '<data key="repo">r</data>' in answers[0]


def test_a_log_file_that_is_put_back_is_the_log_from_then_on(tmp_path):
    log = NotificationLog(tmp_path / "log.jsonl")
    for n in range(5):
        log.append("X", {"n": str(n)})
    backup = log.copy()
    log.append("X", {"n": "lost"})
    log.put_back(backup)
    assert log.read(6).next == 6
    log.cut(3)
    assert log.append("X", {"n": "new"}) == 3
    log.close()
    after = NotificationLog(tmp_path / "log.jsonl")
    assert [entry.values["n"] for entry in after] == ["0", "1", "new"]


def test_a_delete_without_the_right_to_write_is_a_500(backend, get):
    key = backend.store([{"name": "hello"}])
    backend.read_only = True
    answer = httpx.delete(f"{backend.url}/notificationpayload/{key}", trust_env=False)
    assert answer.status_code == 500
    assert get(f"/notificationpayload/{key}").is_success


def test_payloads_are_kept_until_they_are_deleted(backend, get):
    key = backend.store([{"name": "hello"}])
    assert get(f"/notificationpayload/{key}").json() == [{"name": "hello"}]
    for _ in range(2):
        assert httpx.delete(f"{backend.url}/notificationpayload/{key}", trust_env=False).is_success
    answer = get(f"/notificationpayload/{key}")
    assert answer.status_code == 404
    assert answer.text == capture("31-notificationpayload-after-delete")


def test_metadata_has_the_form_of_the_captures(get):
    assert get("/source/nosuch/_meta").text == capture("source/missing-project")
    assert get("/source/home:alice/nosuch/_meta").text == capture("source/missing-package")
    assert '<person userid="alice" role="maintainer" />' in get("/source/home:alice/_meta").text
    info = get("/source/home:alice/hello2?view=info").text
    assert '<linked project="home:alice" package="hello" />' in info


def test_a_log_continues_after_a_restart(tmp_path):
    journal = tmp_path / "log.jsonl"
    before = NotificationLog(journal)
    for n in range(5):
        before.append("X", {"n": str(n)})
    journal.open("a").write('[6, "cut by a ki')
    after = NotificationLog(journal)
    assert (after.first, after.end) == (1, 6)
    assert after.append("X", {}) == 6
    after.close()
    assert NotificationLog(journal).read(5).next == 7


def test_odd_notifications_occur_only_in_some_rounds():
    notifications = activity()
    calm = [type for type, *_ in islice(notifications, 33 * (ODD_ROUND_EVERY - 1))]
    assert set(calm) <= set(by_raw_type())
    odd = {type for type, *_ in islice(notifications, len(captured_notifications()))}
    assert odd > {"NO_SUCH_EVENT"}
    assert rounds_of(33 * 7) == 7


def test_the_command_stops_cleanly_and_needs_no_database(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "--port", "0"], env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[2]
        wait_until(
            lambda: (
                httpx.get(f"{url}/lastnotifications?view=json", trust_env=False).json()["next"]
                > 4  # three a second
            )
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0
    finally:
        process.kill()
    assert NotificationLog(tmp_path / "sample-backend.jsonl").end > 4


def test_a_taken_port_is_a_clear_error(tmp_path):
    with servers.running() as taken:
        port = str(taken.server_port)
        done = subprocess.run(
            [*COMMAND, "--port", port],
            env=environment(tmp_path), capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []
    assert f"--port {port}" in done.stderr
    assert "Traceback" not in done.stderr

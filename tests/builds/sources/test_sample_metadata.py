"""The sample backend's projects and packages are written, listed and deleted as on a real one."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.servers import backend as servers

OBS = Path(__file__).parents[2] / "data" / "obs"
META = (OBS / "source" / "project-meta.body").read_text()

Send = Callable[..., httpx.Response]


@pytest.fixture
def backend():
    with servers.running() as running:
        yield running


@pytest.fixture
def send(backend: servers.TestBackend) -> Send:
    def request(method: str, path: str, body: str = "") -> httpx.Response:
        url = f"{backend.url}/source/{path}"
        return httpx.request(method, url, content=body, timeout=60, trust_env=False)

    return request


def test_a_list_of_packages_is_that_of_the_capture_to_the_letter(send: Send) -> None:
    for package in ("hello2", "hello-copy"):
        assert send("DELETE", f"home:alice/{package}").text == '<status code="ok" />\n'
    assert send("GET", "home:alice").text == (OBS / "source" / "project-list.body").read_text()
    missing = (OBS / "source" / "missing-project.body").read_text()
    assert send("GET", "nosuch").text == missing


def test_projects_are_listed_by_name(send: Send) -> None:
    send("PUT", "a%26b/_meta", '<project name="a&amp;b"/>')
    names = send("GET", "").text.splitlines()
    assert names[:2] == ["<directory>", '  <entry name="a&amp;b" />']
    assert len(names) == 9


def test_a_meta_that_was_written_is_returned(send: Send) -> None:
    assert send("PUT", "home:new/_meta?user=alice", META).text == META
    assert send("GET", "home:new/_meta").text == META
    assert send("PUT", "nosuch/hello/_meta", "<package/>").status_code == 404


def test_changes_are_reported_as_in_the_capture(backend: servers.TestBackend, send: Send) -> None:
    captured = json.loads((OBS / "11-all-from-1-json.body").read_text())["notification"]
    wanted = [
        (entry["type"], entry["data"])
        for entry in captured
        if entry["type"].endswith(("_PROJECT", "_PACKAGE"))
        and entry["data"].get("package") in (None, "hello")
    ]
    backend.metadata.metas.clear()
    for request in (
        "PUT home:alice/_meta?user=alice",
        "PUT home:alice/_meta?user=alice",
        "PUT home:alice/hello/_meta?user=alice",
        "PUT home:alice/hello/_meta?user=alice",
        "DELETE home:alice/hello?user=alice&comment=bye&requestid=43",
        "POST home:alice/hello?cmd=undelete&user=alice&comment=back",
        "PUT home:doomed/_meta?user=root",
        "DELETE home:doomed?user=root&comment=gone&requestid=44",
        "POST home:doomed?cmd=undelete&user=root&comment=undo",
    ):
        assert send(*request.split(), "<project/>").status_code == 200
    assert [(entry.type, dict(entry.values)) for entry in backend.log] == wanted
    assert len(wanted) == 9


def test_a_deleted_project_comes_back_with_its_packages(send: Send) -> None:
    before = send("GET", "home:alice").text
    send("DELETE", "home:alice")
    assert send("GET", "home:alice/hello/_meta").status_code == 404
    send("POST", "home:alice?cmd=undelete")
    assert send("GET", "home:alice").text == before
    assert send("POST", "home:alice?cmd=undelete").status_code == 404

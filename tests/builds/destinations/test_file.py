import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.domains.builds.destinations.base import Misconfigured, Unavailable
from tailrace.domains.builds.destinations.file import FileBus
from tailrace.jobs.destinations.delivery import DeliveryStatus
from tests import forks
from tests.builds.destinations.kit import messages


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_message_is_a_line_with_id_key_and_body(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "bus.ndjson"
    deliveries = FileBus("file", f"file://{path}").send(messages(2))
    assert [delivery.status for delivery in deliveries] == [
        DeliveryStatus.SENT,
        DeliveryStatus.SENT,
    ]
    assert lines(path) == [
        {"id": 1, "key": "opensuse.obs.package.commit.n1", "body": {"rev": "1"}},
        {"id": 2, "key": "opensuse.obs.package.commit.n2", "body": {"rev": "2"}},
    ]


def test_an_incomplete_line_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "bus.ndjson"
    path.write_bytes(b'{"id": 7, "ke')
    FileBus("file", f"file://{path}").send(messages(1))
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()[1:]] == [1]


@pytest.fixture
def small_files() -> Iterator[int]:
    """A full disk, as far as this process can make one: files end at 4000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    yield 4000
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_write_that_fills_the_disk_is_undone(tmp_path: Path, small_files: int) -> None:
    path = tmp_path / "bus.ndjson"
    bus = FileBus("file", f"file://{path}")
    bus.send(messages(10))
    content = path.read_bytes()
    with pytest.raises(Unavailable, match="File too large"):
        bus.send(messages(100))
    assert path.read_bytes() == content


def test_a_folder_that_may_not_be_written_is_a_clear_error(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    with pytest.raises(Unavailable, match=r"bus\.ndjson: .*(File exists|Not a directory)"):
        FileBus("file", f"file://{blocker}/bus.ndjson").send(messages(1))


@pytest.mark.parametrize("url", ["file://", "file:///", "file:///var/log/"])
def test_a_url_that_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(Misconfigured, match="does not name a file"):
        FileBus("file", url)


WRITER = """
import sys
from tailrace.domains.builds.destinations.base import Message
from tailrace.domains.builds.destinations.file import FileBus
bus = FileBus("file", "file://" + sys.argv[1])
for n in range(50):
    bus.send([Message(int(sys.argv[2]) + n, "k", b'{"x":"' + b"y" * 9000 + b'"}')] * 3)
"""


def test_processes_that_write_at_once_mix_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "bus.ndjson"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    setup = "import django; django.setup()\n" + WRITER
    writers = [
        forks.Fork(["-c", setup, str(path), str(start)], env=env) for start in (1000, 2000, 3000)
    ]
    assert [writer.wait(300) for writer in writers] == [0, 0, 0]
    ids = [line["id"] for line in lines(path)]
    assert sorted(set(ids)) == [base + n for base in (1000, 2000, 3000) for n in range(50)]
    assert len(ids) == 450

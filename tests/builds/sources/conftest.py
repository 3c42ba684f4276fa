"""Another process that reads the log, for tests that kill it."""

import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests import forks
from tests.kit import PATIENCE, ROOT
from tests.servers.backend import TestBackend

READ_ALONE = """
import django
django.setup()
from django.conf import settings
from tailrace.domains.builds.sources.log_client import LogClient
from tailrace.domains.builds.sources.log_reader import LogReader
from tailrace.domains.builds.sources.poll_lease import PollLease
lease = PollLease.acquire("main", "999.1")
with LogClient("main", settings.OBS_BACKENDS["main"]) as client:
    LogReader(client, lease).read()
"""


@pytest.fixture
def another_process(
    process_env: dict[str, str], backend: TestBackend
) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a process that reads the backend's log; all are killed in the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(**variables: str) -> subprocess.Popen[bytes]:
        env = process_env | {"OBS_BACKEND_URL": f"main={backend.url}", "OBS_TIMEOUT_SECONDS": "20"}
        env |= {"OBS_START": "oldest", "OBS_PAST": "notify", **variables}
        started.append(forks.Fork(["-c", READ_ALONE], env=env, cwd=ROOT))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(PATIENCE)

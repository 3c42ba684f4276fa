"""Flower's password: what an attacker got is in the names."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests import forks
from tests.kit import PATIENCE, ROOT, wait_until
from tests.servers.platform import free_ports

pytestmark = pytest.mark.once

RIGHT = ("operator", "a-password-of-flower")
WRONG = ("operator", "a-password")


@contextmanager
def running_flower(folder: Path) -> Iterator[str]:
    """Flower as the Procfile starts it; its address."""
    (port,) = free_ports(1)
    variables = {
        "FLOWER_PORT": str(port), "FLOWER_BASIC_AUTH": ":".join(RIGHT), "TAILRACE_VAR": str(folder),
        "SECRET_KEY": "k" * 50,
    }  # fmt: skip
    words = ["celery", "-A", "tailrace.config", "flower", "--conf=config/servers/flower.py"]
    with (folder / "flower.log").open("wb") as log:
        process = forks.Fork(
            ["-m", *words],
            cwd=ROOT, env={**os.environ, **variables}, stdout=log, stderr=log,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(process, url), what="Flower starts")
        yield url
    finally:
        process.kill()
        process.wait()


def _answers(process: "subprocess.Popen[bytes]", url: str) -> bool:
    assert process.poll() is None, "Flower has ended"
    try:
        return httpx.get(f"{url}/healthcheck", timeout=PATIENCE).status_code == 200
    except httpx.TransportError:
        return False


def test_the_password_of_flower_got_guessed_without_end(tmp_path: Path) -> None:
    with running_flower(tmp_path) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        assert [client.get("/workers").status_code for _ in range(30)] == [401] * 30
        assert client.get("/workers", auth=RIGHT).status_code == 200
        odd = client.get("/workers", auth=("operator", "pässword"))
        assert (odd.status_code, odd.text) == (401, "Access denied"), "no traceback"
        guesses = [client.get("/workers", auth=WRONG).status_code for _ in range(25)]
        assert guesses == [401] * 19 + [429] * 6
        assert client.get("/workers", auth=RIGHT).status_code == 429, "it may be a guess"

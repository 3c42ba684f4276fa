"""What `make run` prints of its processes, and what goes to its file alone."""

import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from honcho.printer import Message

from tailrace.config.devserver import terminal
from tailrace.config.devserver.terminal import Terminal
from tests.kit import wait_until

INFO = "2026-11-27T14:34:54Z [info     ] Listening at: http://127.0.0.1:8000\n"
ERROR = '{"event": "tick.failed", "level": "error"}\n'
WARNING = "2026-11-27T14:34:54Z [warning  ] drain.timed_out\n"


@pytest.fixture
def web() -> Iterator[str]:
    """The address of a web server that answers."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def line(name: str, text: str) -> Message:
    return Message("line", text.encode(), datetime(2026, 11, 27, 14, 34), name, None)


Make = Callable[..., Terminal]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make(url: str = "http://127.0.0.1:1/", all_lines: bool = False) -> Terminal:
        return Terminal(tmp_path / "output.log", url, lambda _answers: None, all_lines=all_lines)

    return make


def test_information_goes_to_the_file_alone(make: Make, tmp_path: Path, capsys) -> None:
    terminal = make()
    terminal.output = None  # so that pytest captures the lines
    terminal.write(line("web", INFO))
    terminal.write(line("worker", WARNING))
    terminal.write(line("worker", ERROR))
    terminal.write(line("reload", "a.py changed: restarting\n"))
    printed = capsys.readouterr().out
    assert "Listening" not in printed
    assert "drain.timed_out" in printed
    assert "tick.failed" in printed
    assert "a.py changed" in printed
    kept = (tmp_path / "output.log").read_text()
    assert all(text in kept for text in ("Listening", "drain.timed_out", "a.py changed"))


def test_all_lines_are_printed_where_that_was_asked_for(make: Make, capsys) -> None:
    terminal = make(all_lines=True)
    terminal.output = None
    terminal.write(line("web", INFO))
    assert "Listening" in capsys.readouterr().out


def test_the_last_lines_of_a_process_that_ends_are_printed(make: Make, capsys) -> None:
    terminal = make()
    terminal.output = None
    terminal.write(line("web", INFO))
    terminal.write(line("beat", "ImportError: no module\n"))
    terminal.write(line("system", "beat stopped (rc=1)\n"))
    terminal.write(line("system", "web stopped (rc=0)\n"))
    printed = capsys.readouterr().out
    assert "ImportError: no module" in printed
    assert "beat stopped (rc=1)" in printed
    assert "Listening" not in printed
    assert "web stopped" not in printed


def test_an_end_by_a_signal_prints_nothing_more(make: Make, capsys) -> None:
    terminal = make()
    terminal.output = None
    terminal.write(line("system", "SIGINT received\n"))
    terminal.write(line("web", WARNING))
    terminal.write(line("system", "web stopped (rc=0)\n"))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("answers", [True, False])
def test_the_addresses_follow_when_the_web_server_answers_or_takes_long(
    web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr(terminal, "READY_SECONDS", 60 if answers else 0)
    calls: list[bool] = []
    url = web if answers else "http://127.0.0.1:1/"
    Terminal(tmp_path / "output.log", url, calls.append, all_lines=False).write(line("web", INFO))
    wait_until(lambda: calls)
    assert calls == [answers]

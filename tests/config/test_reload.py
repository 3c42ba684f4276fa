"""`make run` takes up changed code, and says why it does not."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tailrace.config.devserver import reload
from tests.kit import PATIENCE, ROOT, wait_until
from tests.servers.platform import living


def test_changed_new_and_removed_files_of_code_are_seen(tmp_path: Path) -> None:
    for name in (
        "shop/a.py",
        "shop/b.html",
        "shop/notes.md",
        "var/c.py",
        ".venv/d.py",
        "tests/e.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    before = reload.look(str(tmp_path))
    assert {Path(path).name for path in before} == {"a.py", "b.html"}
    assert reload.changes(before, reload.look(str(tmp_path))) == []
    os.utime(tmp_path / "shop/a.py", (1, 1))
    (tmp_path / "shop/b.html").unlink()
    (tmp_path / "shop/new.py").touch()
    (tmp_path / "shop/gone.py").symlink_to("gone.py")  # cannot be looked at
    changed = reload.changes(before, reload.look(str(tmp_path)))
    assert [Path(path).name for path in changed] == ["a.py", "b.html", "new.py"]


def test_a_syntax_error_is_named_with_its_line(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("x = 1\n")
    bad.write_text("x = 1\nx = (\n")
    paths = [str(good), str(tmp_path / "gone.py"), str(bad)]
    assert reload.syntax_error(paths).endswith("bad.py:2: '(' was never closed")
    assert reload.syntax_error(paths[:2]) == ""


@contextmanager
def restarted(mark: Path, command: str) -> Iterator[subprocess.Popen[bytes]]:
    words = [sys.executable, "-m", "tailrace.config.devserver.restarter", str(mark), "30", command]
    with mark.with_name("printed").open("w") as printed:
        process = subprocess.Popen(words, cwd=ROOT, start_new_session=True, stdout=printed)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)


WAITS = "ended with status 3: restarts at the next change\n"


def touch(mark: Path) -> None:
    """Touch it so that its time differs from any before."""
    times = mark.stat().st_mtime_ns + 10**9 if mark.exists() else 10**9
    mark.touch()
    os.utime(mark, ns=(times, times))


def test_a_command_is_started_again_and_one_that_fails_then_waits_for_the_next_change(
    tmp_path: Path,
) -> None:
    mark, starts, broken = (tmp_path / name for name in ("mark", "starts", "broken"))
    command = f"echo $$ >> {starts}; test ! -e {broken} || exit 3; exec sleep 300"

    def pids() -> list[str]:
        return starts.read_text().split() if starts.exists() else []

    with restarted(mark, command) as process:
        wait_until(pids)
        for number in (2, 3, 4):
            broken.touch() if number == 3 else broken.unlink(missing_ok=True)
            touch(mark)
            wait_until(lambda number=number: len(pids()) == number)
            assert process.poll() is None
            if number == 3:
                wait_until(lambda: (tmp_path / "printed").read_text() == WAITS)
            assert not [pid for pid in pids()[:-1] if psutil.pid_exists(int(pid))]
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE) in (-signal.SIGTERM, 128 + signal.SIGTERM)


def test_a_command_that_ends_before_any_change_ends_the_others_too(tmp_path: Path) -> None:
    with restarted(tmp_path / "mark", "exit 7") as process:
        assert process.wait(PATIENCE) == 7


PARENT = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True).wait()"


@contextmanager
def killed_parent_of(*words: str) -> Iterator[psutil.Process]:
    """Start a module with a parent, which is killed at the end of the block. Give the process."""
    command = [sys.executable, "-c", PARENT, sys.executable, "-m", *words]
    parent = subprocess.Popen(command, cwd=ROOT)
    try:
        [process] = wait_until(lambda: psutil.Process(parent.pid).children())
        yield process
    finally:
        parent.kill()
        parent.wait()


def test_a_command_ends_when_the_parent_of_its_restarter_was_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    stubborn = f"sh -c 'trap \"\" TERM; echo $$ >> {pids}; sleep 300 & wait; wait'"
    command = f"{stubborn} & echo $$ >> {pids}; sleep 300"
    with killed_parent_of("tailrace.config.devserver.restarter", "", "0.1", command) as restarter:
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        processes = [restarter, *restarter.children(recursive=True)]
        assert len(processes) == 5
    wait_until(lambda: not living(processes))


def test_the_watch_of_the_code_ends_when_its_parent_was_killed(tmp_path: Path) -> None:
    with killed_parent_of("tailrace.config.devserver.reload", str(tmp_path / "mark")) as reloader:
        wait_until(lambda: reloader.cpu_times().user > 0.1)
    wait_until(lambda: not living([reloader]))

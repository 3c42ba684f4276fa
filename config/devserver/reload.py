"""Watch the code of `make run`: `python -m tailrace.config.devserver.reload MARK`. After a change
it compiles the changed files, and runs checks and migrations with the new code. If all succeed, it
touches MARK, and `restarter` restarts the processes. It ends when its parent has ended. This module
imports none of the watched code."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

SECONDS = 0.5
"""Seconds between two scans of the files."""
MIGRATE_SECONDS = 600
SUFFIXES = (".py", ".html", ".css", ".js", ".svg", ".txt", ".xml")
IGNORED = {"var", "tests", "docs", "bench", "scripts", "__pycache__", "node_modules"}
MOST_ENTRIES = 20_000
"""Maximum number of files and folders to scan: a folder with more is no folder of code."""
MOST_LINES = 15
"""Lines of an error message that are printed."""

Files = dict[str, int]
"""The modification times of files by path, in nanoseconds."""


def look(folder: str) -> Files:
    """Return the code files below a folder with their modification times."""
    files: Files = {}
    for entry in islice(_walk(folder), MOST_ENTRIES):
        with suppress(OSError):  # the file was just removed, such as a temporary file of an editor
            if entry.name.endswith(SUFFIXES) and entry.is_file():
                files[entry.path] = entry.stat().st_mtime_ns
    return files


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder and its subfolders, except ignored ones."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            is_code = entry.name not in IGNORED and not entry.name.startswith(".")
            if is_code and entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)


def changes(before: Files, now: Files) -> list[str]:
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def syntax_error(paths: list[str]) -> str:
    """Return the first syntax error in these files, with path and line; "" if there is none."""
    for path in paths:
        if not path.endswith(".py"):
            continue
        try:
            compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        except FileNotFoundError:
            continue
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            return f"{os.path.relpath(path)}:{line}: {getattr(error, 'msg', error)}"
    return ""


def migrate() -> str:
    """Run checks and migrations with the current code; return the end of the output, "" if they
    succeed."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tailrace", "migrate", "--no-input", "-v", "0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=MIGRATE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"`tailrace migrate` took more than {MIGRATE_SECONDS} s"
    return "\n".join(done.stdout.splitlines()[-MOST_LINES:]) if done.returncode else ""


def watch(folder: str, mark: Path) -> None:
    running = last = look(folder)
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(SECONDS)
        now = look(folder)
        if now != last:  # wait for the next scan: an editor or a checkout may still be writing
            last = now
        elif changed := changes(running, now):
            running = now
            take_up(changed, mark)


def take_up(changed: list[str], mark: Path) -> None:
    """Restart the processes with the changed files, or print why not."""
    names = os.path.relpath(changed[0])
    if len(changed) > 1:
        names += f" and {len(changed) - 1} more"
    if problem := syntax_error(changed) or migrate():
        print(problem)
        print(f"{names} changed, but has an error: the old code keeps running", flush=True)
    else:
        print(f"{names} changed: restarting", flush=True)
        mark.touch()


if __name__ == "__main__":
    watch(os.getcwd(), Path(sys.argv[1]))

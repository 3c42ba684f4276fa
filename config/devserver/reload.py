"""Watch the code of `make run`: `python -m tailrace.config.devserver.reload MARK`.

After each change of a file it compiles what was changed, checks and migrates with the new code, and
then touches MARK, at which web, worker and beat start again (`restarter`). Until all of that
succeeds they run on with the code that they have. It imports none of the code that it watches.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

SECONDS = 0.5
"""Between two looks."""
MIGRATE_SECONDS = 600
SUFFIXES = (".py", ".html", ".css", ".js", ".svg", ".txt", ".xml")
IGNORED = {"var", "tests", "docs", "bench", "scripts", "__pycache__", "node_modules"}
MOST_ENTRIES = 20_000
"""Of files and folders; more are not looked at: this is no folder of code."""
MOST_LINES = 15
"""Lines of an error that are shown."""

Files = dict[str, int]
"""When each file was changed, in nanoseconds."""


def look(folder: str) -> Files:
    """Return the files of code below a folder, and when they were changed."""
    files: Files = {}
    for entry in islice(_walk(folder), MOST_ENTRIES):
        with suppress(OSError):  # it was removed a moment ago, as editors do with their copies
            if entry.name.endswith(SUFFIXES) and entry.is_file():
                files[entry.path] = entry.stat().st_mtime_ns
    return files


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder and in those below it."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            is_code = entry.name not in IGNORED and not entry.name.startswith(".")
            if is_code and entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)


def changes(before: Files, now: Files) -> list[str]:
    """Return the files that were added, changed or removed."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def syntax_error(paths: list[str]) -> str:
    """Return the first syntax error of these files, with its place; empty if there is none."""
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
    """Check and migrate with the code as it is now; return the end of the output if it failed."""
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
    """Look for changes until this process is ended."""
    running = seen = look(folder)
    while True:
        time.sleep(SECONDS)
        now = look(folder)
        if now != seen:  # again at the next look: an editor or a checkout may not be done
            seen = now
        elif changed := changes(running, now):
            running = now
            take_up(changed, mark)


def take_up(changed: list[str], mark: Path) -> None:
    """Let the processes start again with the changed files, or print why they do not."""
    names = os.path.relpath(changed[0])
    if len(changed) > 1:
        names += f" and {len(changed) - 1} more"
    if problem := syntax_error(changed) or migrate():
        print(problem)
        print(f"{names} changed, and is not in use: the code of before runs on", flush=True)
    else:
        print(f"{names} changed: starting again", flush=True)
        mark.touch()


if __name__ == "__main__":
    watch(os.getcwd(), Path(sys.argv[1]))

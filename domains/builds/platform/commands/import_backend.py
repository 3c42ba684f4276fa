"""`tailrace import_backend`: read the metadata of all projects and packages once."""

import sys
import time
from argparse import ArgumentParser
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.dateparse import parse_datetime

from tailrace.domains.builds.backends.client import BackendError
from tailrace.domains.builds.backends.import_all import LONG_AGO, BackendAway, Counts, Import, Pace
from tailrace.domains.builds.backends.metadata import MetadataClient
from tailrace.environment.suggest import did_you_mean

MAX_ERRORS_SHOWN = 20
AGAIN = "Run it again: it continues where it stopped."
WIDTH = 30
"""Characters of the bar."""


class ProgressBar:
    """Shows how many items are done. `out` is a command's stdout."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._on_terminal = bool(out.isatty())
        self._started = self._drawn_at = time.monotonic()
        self._state: tuple[int, int, str] | None = None
        self._length = 0

    def show(self, done: int, total: int, note: str = "") -> None:
        """Set the progress, and draw it unless it was drawn a short time ago."""
        self._state = (done, total, note)
        if time.monotonic() - self._drawn_at >= (0.2 if self._on_terminal else 30):
            self._draw(*self._state)

    def end(self) -> None:
        """Draw the last progress, and end the line."""
        if self._state is not None:
            self._draw(*self._state)
            if self._on_terminal:
                self._out.write("")

    def _draw(self, done: int, total: int, note: str) -> None:
        self._drawn_at = time.monotonic()
        share = done / total if total else 1.0
        text = f"{done} of {total} {note}, {self._remaining_time(done, total)}"
        if self._on_terminal:
            bar = f"[{'#' * int(share * WIDTH):<{WIDTH}}] {text}"
            self._out.write("\r" + bar.ljust(self._length), ending="")
            self._out.flush()
            self._length = len(bar)
        else:
            self._out.write(f"{share:4.0%}  {text}")

    def _remaining_time(self, done: int, total: int) -> str:
        """Return the estimated remaining time as text, or `done`."""
        if done == total:
            return "done"
        seconds = (self._drawn_at - self._started) / done * (total - done) if done else 0.0
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"about {hours} h {minutes} min left" if hours else f"about {minutes} min left"


COMPLETE, INCOMPLETE, INTERRUPTED = 0, 1, 130


class Command(BaseCommand):
    help = (
        "Read the metadata of all projects and packages of the backends: their role holders, and"
        " which projects are hidden. Projects and packages that were read before are skipped, so"
        " the command can be stopped and run again. Exit status: 0 if everything was read, 1 if"
        " some metadata is missing, 2 if the arguments are wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "backend", nargs="*", help="name in OBS_BACKEND_URL; default: all backends"
        )
        parser.add_argument(
            "--per-second",
            type=float,
            default=10.0,
            metavar="N",
            help="maximum number of requests per second, sent one after another (default: 10)",
        )
        parser.add_argument(
            "--since",
            metavar="WHEN",
            help="read everything again that was last read before this time (2026-11-21T08:00,"
            " UTC); needed after events of a backend were lost",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        names = _backends(options["backend"])
        if not 0 < options["per_second"] <= 1000:
            raise CommandError("--per-second must be above 0 and at most 1000", returncode=2)
        since = _time(options["since"])
        complete = [self._import(name, options["per_second"], since) for name in names]
        if not all(complete):
            self.stdout.write(AGAIN)
            sys.exit(INCOMPLETE)

    def _import(self, name: str, per_second: float, since: datetime) -> bool:
        """Import one backend and print the counts; return whether everything was read."""
        bar = ProgressBar(self.stdout)
        stopped = ""
        with MetadataClient(name) as client:
            run = Import(client, Pace(per_second), since, lambda counts: _show(bar, counts))
            try:
                run.run()
            except BackendAway as error:
                stopped = f"stopped, because the backend is not working: {error}"
            except BackendError as error:
                stopped = f"the projects cannot be listed: {error}"
            except KeyboardInterrupt:
                bar.end()
                self.stdout.write(f"{_summary(name, run.counts)}\ninterrupted. {AGAIN}")
                sys.exit(INTERRUPTED)
        bar.end()
        self.stdout.write(_summary(name, run.counts))
        if stopped:
            self.stdout.write(f"  {stopped}")
        return not (stopped or run.counts.failed)


def _backends(names: list[str]) -> list[str]:
    if not settings.OBS_BACKENDS:
        raise CommandError("OBS_BACKEND_URL is not set", returncode=2)
    for name in names:
        if name not in settings.OBS_BACKENDS:
            hint = did_you_mean(name, settings.OBS_BACKENDS)
            raise CommandError(f"OBS_BACKEND_URL has no backend {name!r}{hint}", returncode=2)
    return list(dict.fromkeys(names)) or list(settings.OBS_BACKENDS)


def _time(text: str | None) -> datetime:
    if text is None:
        return LONG_AGO
    at = None
    with suppress(ValueError):
        at = parse_datetime(text)
    if at is None:
        raise CommandError(f"--since {text!r} is not a time such as 2026-11-21T08:00", returncode=2)
    return at.replace(tzinfo=at.tzinfo or UTC)


def _show(bar: ProgressBar, counts: Counts) -> None:
    note = f"projects, {counts.packages} packages read"
    if counts.failed:
        note += f", {len(counts.failed)} failed"
    bar.show(counts.done, counts.projects, note)


def _summary(name: str, counts: Counts) -> str:
    lines = [
        f"{name}: {counts.done} of {counts.projects} projects processed:"
        f" {counts.read} projects and {counts.packages} packages read,"
        f" {counts.read_before} projects and {counts.packages_before} packages read before,"
        f" {counts.gone} deleted since the import began, {len(counts.failed)} failed"
    ]
    errors = list(counts.failed.items())
    lines += [f"  {path}: {error}" for path, error in errors[:MAX_ERRORS_SHOWN]]
    if len(errors) > MAX_ERRORS_SHOWN:
        lines.append(f"  and {len(errors) - MAX_ERRORS_SHOWN} more")
    return "\n".join(lines)

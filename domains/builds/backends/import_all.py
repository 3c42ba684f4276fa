"""Read the metadata of all projects and packages of a backend once."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet

from tailrace.db.query import database_now
from tailrace.domains.builds.backends.client import BackendError, NotTried
from tailrace.domains.builds.backends.metadata import InvalidName, MetadataClient
from tailrace.domains.builds.backends.packages import read_package, refresh_project, store_package
from tailrace.domains.builds.models import Package, Project

MAX_FAILURES_IN_ROW = 3
"""After so many failures the import checks whether the backend works at all: fewer than open the
backend's circuit breaker, so that a few broken packages do not stop the polling of its log."""
LONGEST_WAIT = 60.0
"""Seconds without a pause that the import waits for an open circuit breaker to close."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)


T = TypeVar("T")


class BackendAway(Exception):
    """The backend fails for all requests. The message is the backend's error."""


class Pace:
    """Limits requests, which are sent one after another, to `per_second`."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second
        self._next = time.monotonic()

    def wait(self, requests: int = 1) -> None:
        """Wait until this number of requests may be sent."""
        now = time.monotonic()
        if self._next > now:
            time.sleep(self._next - now)
        self._next = max(self._next, now) + requests * self._interval


@dataclass(slots=True)
class Counts:
    """The progress of an import."""

    projects: int = 0
    """All projects of the backend."""
    done: int = 0
    """Projects that were processed, with success or not."""
    read: int = 0
    """Projects whose metadata this run has read."""
    read_before: int = 0
    """Projects that an earlier run has read completely, with their packages."""
    packages: int = 0
    """Packages that this run has read."""
    packages_before: int = 0
    """Packages that an earlier run has read."""
    gone: int = 0
    """Projects and packages that were deleted after the import had listed them."""
    failed: dict[str, str] = field(default_factory=dict)
    """Errors, by project or `project/package`."""


@dataclass(slots=True)
class Import:
    """One run of the import. It skips projects and packages that were read after `since`, and at
    the end tries failed ones a second time."""

    client: MetadataClient
    pace: Pace
    since: datetime = LONG_AGO
    on_progress: Callable[[Counts], None] = lambda counts: None
    counts: Counts = field(default_factory=Counts)
    _failures_in_row: int = 0

    def run(self) -> Counts:
        """Read all projects and return the counts. Raises BackendError if the projects cannot be
        listed, and BackendAway if the backend fails for all requests."""
        self.pace.wait()
        names = self._when_breaker_is_closed(self.client.projects)
        imported = set(self._projects().filter(imported_at__gte=self.since).values_list("name"))
        self.counts.projects = len(names)
        failed = []
        for name in names:
            if not self._import(name, imported):
                failed.append(name)
            self.counts.done += 1
            self.on_progress(self.counts)
        self.counts.failed.clear()
        for name in failed:
            self._import(name, imported)
            self.on_progress(self.counts)
        return self.counts

    def _import(self, name: str, imported: set[tuple[str]]) -> bool:
        """Read a project with its packages; return whether the project is completely stored."""
        if (name,) in imported:
            self.counts.read_before += 1
            return True
        complete = self._attempt(name, partial(self._read_project, name))
        if complete:
            self._projects().filter(name=name).update(imported_at=database_now())
        return complete

    def _read_project(self, name: str) -> bool:
        if not self._projects().filter(name=name, refreshed_at__gte=self.since).exists():
            self.pace.wait()
            if not refresh_project(self.client, name, 0):
                self.counts.gone += 1
                return True
            self.counts.read += 1
        self.pace.wait()
        packages = self.client.packages(name)
        rows = Package.objects.filter(backend=self.client.name, project=name)
        known = set(rows.filter(refreshed_at__gte=self.since).values_list("name", flat=True))
        self.counts.packages_before += len(known.intersection(packages))
        attempts = [
            self._attempt(f"{name}/{package}", partial(self._read_package, name, package))
            for package in packages
            if package not in known
        ]
        return all(attempts)

    def _read_package(self, project: str, package: str) -> bool:
        self.pace.wait(2)
        state = read_package(self.client, project, package)
        with transaction.atomic():
            store_package(state)
        if state.meta is None:
            self.counts.gone += 1
        else:
            self.counts.packages += 1
        self.on_progress(self.counts)
        return True

    def _attempt(self, path: str, read: Callable[[], bool]) -> bool:
        """Call `read` and return its result. If it fails, record the error for `path` (`project` or
        `project/package`) and return False."""
        try:
            complete = self._when_breaker_is_closed(read)
        except (InvalidName, BackendError) as error:
            self.counts.failed[path] = str(error)
            self._failures_in_row += isinstance(error, BackendError)
            if self._failures_in_row >= MAX_FAILURES_IN_ROW:
                self._check_backend()
            return False
        self._failures_in_row = 0
        return complete

    def _when_breaker_is_closed(self, read: Callable[[], T]) -> T:
        waited = 0.0
        while True:
            try:
                return read()
            except NotTried as error:
                if waited >= LONGEST_WAIT:
                    raise BackendAway(str(error)) from None
                time.sleep(error.wait)
                waited += error.wait

    def _check_backend(self) -> None:
        """Raise BackendAway if even a request for `/` fails, which needs no project or package."""
        self.pace.wait()
        try:
            self.client.get("/")
        except BackendError as error:
            raise BackendAway(str(error)) from None
        self._failures_in_row = 0

    def _projects(self) -> QuerySet[Project]:
        return Project.objects.filter(backend=self.client.name)

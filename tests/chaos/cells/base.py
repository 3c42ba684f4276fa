"""What a fault is, where it happens, and the list of all."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from tests.chaos.deployment import TAILRACE, Deployment
from tests.chaos.load import Load


@dataclass
class Held:
    """The time in which a cell holds what the deployment needs, in CLOCK_MONOTONIC."""

    began: float = 0
    ended: float = 0


@dataclass(frozen=True)
class Site:
    """Where a fault happens; `scale` shortens its pauses."""

    deployment: Deployment
    load: Load
    scale: float = 1.0
    held: Held = field(default_factory=Held)
    problems: list[str] = field(default_factory=list)
    """What the cell itself finds wrong, in words."""
    until_settled: ExitStack = field(default_factory=ExitStack)
    """What stays as it is until all is done."""

    def pause(self, seconds: float) -> None:
        """Wait while the deployment works."""
        time.sleep(seconds * self.scale)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """The block in which the cell's `goes_on` and `published` must be reached."""
        self.held.began = time.monotonic()
        yield
        self.held.ended = time.monotonic()


@dataclass(frozen=True)
class Cell:
    """A fault by its name."""

    name: str
    what: str
    act: Callable[[Site], None]
    plain: bool
    """Whether plain Celery can have it, too."""
    goes_on: Mapping[str, int]
    """Handler → how many of its effects must happen in `Site.holding`, at least."""
    published: int
    """How many events must be acknowledged in `Site.holding`, at least."""
    crashes: bool
    """Whether a process may end by itself."""
    charges: bool
    """Whether a job may lose its worker, and an attempt."""


CELLS: dict[str, Cell] = {}


def cell(
    name: str,
    *,
    plain: bool = False,
    goes_on: Mapping[str, int] | None = None,
    published: int = 0,
    crashes: bool = True,
    charges: bool = True,
) -> Callable[[Callable[[Site], None]], Cell]:
    """Register a fault; its docstring says what it is."""

    def register(act: Callable[[Site], None]) -> Cell:
        what = " ".join((act.__doc__ or "").split()).rstrip(".")
        CELLS[name] = Cell(name, what, act, plain, goes_on or {}, published, crashes, charges)
        return CELLS[name]

    return register


def _a(site: Site, kind: str) -> str:
    return site.deployment.random.choice(site.deployment.named(kind))


def at_work(site: Site, handlers: str = "chaos.%") -> str:
    """A worker that has a job of such handlers in hand: to kill one between two jobs would show
    little."""
    until = time.monotonic() + 2
    while site.deployment.side == TAILRACE and time.monotonic() < until:
        with site.deployment.engines.connect() as database:
            row = database.execute(
                "SELECT split_part(worker, ':', 2)::int FROM tailrace_jobs_job"
                " WHERE state = 'running'"
                " AND lease_until > now() AND handler LIKE %s ORDER BY id DESC LIMIT 1",
                [handlers],
            ).fetchone()
        for name in site.deployment.named("worker"):
            if row and row[0] in site.deployment.children(name):
                return name
        time.sleep(0.01)
    return _a(site, "worker")


class FaultUnavailable(Exception):
    """This machine cannot have the fault; the message says what is missing."""


def of(side: str) -> list[str]:
    """The names of the cells that a side goes through."""
    return [cell.name for cell in CELLS.values() if side == TAILRACE or cell.plain]

"""The faults. Each takes a house at work and returns when the last of its harm is done."""

import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.chaos.apps import LEASE
from tests.chaos.house import TAILRACE, House
from tests.chaos.load import Load


@dataclass(frozen=True)
class Site:
    """Where a fault happens; `scale` shortens its pauses."""

    house: House
    load: Load
    scale: float = 1.0

    def pause(self, seconds: float) -> None:
        """Let the work go on for a while."""
        time.sleep(seconds * self.scale)


@dataclass(frozen=True)
class Cell:
    """A fault by its name."""

    name: str
    what: str
    act: Callable[[Site], None]
    plain: bool
    """Whether it says something of plain Celery, too."""


CELLS: dict[str, Cell] = {}


def cell(name: str, *, plain: bool = False) -> Callable[[Callable[[Site], None]], Cell]:
    """Register a fault; its docstring says what it is."""

    def register(act: Callable[[Site], None]) -> Cell:
        CELLS[name] = Cell(name, (act.__doc__ or "").strip().rstrip("."), act, plain)
        return CELLS[name]

    return register


def _a(site: Site, kind: str) -> str:
    return site.house.random.choice(site.house.named(kind))


def _at_work(site: Site) -> str:
    """A worker that has a job in hand: to kill one between two jobs would show little."""
    until = time.monotonic() + 2
    while site.house.side == TAILRACE and time.monotonic() < until:
        with site.house.engines.connect() as database:
            row = database.execute(
                "SELECT split_part(worker, ':', 2)::int FROM jobs_job WHERE state = 'running'"
                " AND lease_until > now() AND handler LIKE 'chaos.%' ORDER BY id DESC LIMIT 1"
            ).fetchone()
        for name in site.house.named("worker"):
            if row and row[0] in site.house.children(name):
                return name
        time.sleep(0.01)
    return _a(site, "worker")


@cell("worker", plain=True)
def worker(site: Site) -> None:
    """kill -9 a worker with its children, five times."""
    for _ in range(5):
        site.house.kill(_at_work(site))
        site.pause(2)


@cell("child", plain=True)
def child(site: Site) -> None:
    """kill -9 a child of a worker, ten times."""
    for _ in range(10):
        site.house.kill_child(_at_work(site))
        site.pause(1)


@cell("web", plain=True)
def web(site: Site) -> None:
    """kill -9 the web server that publishes, four times."""
    for _ in range(4):
        site.house.kill("web")
        site.pause(3)


@cell("beat")
def beat(site: Site) -> None:
    """kill -9 both beats, one after the other and together."""
    for names in (["beat1"], ["beat2"], ["beat1", "beat2"]):
        for name in names:
            site.house.kill(name)
        site.pause(3)


@cell("beats")
def beats(site: Site) -> None:
    """A third and a fourth beat beside the two."""
    for name in ("beat3", "beat4"):
        site.house.start_beat(name)
    site.house.harm.append("two beats more")
    site.pause(6)
    for name in ("beat3", "beat4"):
        site.house.halt(name)


@cell("stop", plain=True)
def stop(site: Site) -> None:
    """SIGSTOP a worker past its leases, then SIGCONT."""
    name = _at_work(site)
    site.house.signal_all(name, signal.SIGSTOP)
    site.house.harm.append(f"SIGSTOP {name}")
    time.sleep(LEASE + max(8 * site.scale, 3))
    site.house.signal_all(name, signal.SIGCONT)


@cell("cut", plain=True)
def cut(site: Site) -> None:
    """End all sessions of PostgreSQL, eight times."""
    for _ in range(8):
        site.house.engines.cut()
        site.house.harm.append("sessions ended")
        site.pause(1)


@cell("pg-fast", plain=True)
def pg_fast(site: Site) -> None:
    """Restart PostgreSQL, as an administrator does."""
    site.house.engines.postgres.stop()
    site.pause(1)
    site.house.engines.postgres.start()
    site.house.harm.append("PostgreSQL restarted")


@cell("pg-immediate", plain=True)
def pg_immediate(site: Site) -> None:
    """Let PostgreSQL crash, three times; it recovers from its log."""
    for _ in range(3):
        process = site.house.engines.postgres.process()
        assert process, "PostgreSQL does not run"
        process.send_signal(signal.SIGQUIT)
        process.wait(30)
        site.pause(1)
        site.house.engines.postgres.start()
        site.house.harm.append("PostgreSQL crashed")
        site.pause(2)


@cell("flush", plain=True)
def flush(site: Site) -> None:
    """FLUSHALL, five times."""
    for _ in range(5):
        site.house.engines.flush()
        site.house.harm.append("flushed")
        site.pause(1)


@cell("redis-restart", plain=True)
def redis_restart(site: Site) -> None:
    """kill -9 the broker, which keeps nothing, and start it anew, twice."""
    for _ in range(2):
        _redis_away(site, 0)
        site.pause(2)


@cell("redis-away", plain=True)
def redis_away(site: Site) -> None:
    """The broker is away for 30 s, and publishing goes on."""
    _redis_away(site, 30)


def _redis_away(site: Site, seconds: float) -> None:
    process = site.house.engines.valkey.process()
    assert process, "the broker does not run"
    process.kill()
    process.wait(30)
    site.pause(seconds)
    site.house.engines.valkey.start()
    site.house.harm.append("broker restarted")


@cell("clock")
def clock(site: Site) -> None:
    """A worker's clock is 5 minutes ahead, a beat's 5 minutes behind."""
    if not shutil.which("faketime"):
        raise NotHere("faketime is not installed; scripts/install-system-packages does it")
    house = site.house
    before, after = house.processes["worker3"], house.processes["beat2"]
    house.halt("worker3")
    house.halt("beat2")
    house.start_worker("worker3", "faketime", "-f", "+300s", CHAOS_AHEAD="300")
    house.start("beat2", "-f", "-300s", *after.command, command="faketime")
    house.harm.append("clocks wrong")
    site.pause(12)
    for name, process in (("worker3", before), ("beat2", after)):
        house.halt(name)
        house.start(name, *process.command[1:])


@cell("disk")
def disk(site: Site) -> None:
    """The disk of the bus file is full for 10 s."""
    if not site.house.has_disk:
        raise NotHere("a disk that can be full needs the right to mount one")
    site.pause(2)
    site.house.fill_disk(True)
    site.house.harm.append("disk full")
    site.pause(10)
    site.house.fill_disk(False)


@cell("xmin")
def xmin(site: Site) -> None:
    """A session idle in its transaction holds xmin for 15 s: nothing can be vacuumed."""
    with site.house.engines.connect() as session:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        session.execute("SELECT count(*) FROM jobs_queue")
        site.house.harm.append("xmin held")
        site.pause(15)
        session.execute("ROLLBACK")


@cell("poller")
def poller(site: Site) -> None:
    """The backend tells 2,000 things in 15 s, while workers are killed and the broker forgets."""
    for step in range(20):
        site.load.notify(int(100 * site.scale) or 1)
        if step % 4 == 1:
            site.house.kill(_at_work(site))
        if step % 8 == 3:
            site.house.engines.flush()
            site.house.harm.append("flushed")
        site.pause(0.75)


MIXED = (
    "worker child child beat stop cut pg-fast pg-immediate flush flush redis-restart web".split()
)


@cell("mixed")
def mixed(site: Site) -> None:
    """All of these at random for 45 s, several at once."""
    until = time.monotonic() + 45 * site.scale
    brief = replace(site, scale=0.1)
    bag = list(MIXED)
    while time.monotonic() < until:
        if not bag:
            bag = list(MIXED)
        CELLS[bag.pop(site.house.random.randrange(len(bag)))].act(brief)
        site.pause(site.house.random.uniform(0, 3))


@cell("deploy")
def deploy(site: Site) -> None:
    """Old and new code side by side; a handler goes, one comes, payloads change; and back."""
    house = site.house
    new, old = {"CHAOS_CODE": "new"}, {"CHAOS_CODE": "old"}
    for code in (new, old):
        house.environment |= code
        house.manage("migrate", "-v0")
        for name in ("worker3", "web", "worker2", "beat1", "worker1", "beat2"):
            house.halt(name)
            if name.startswith("worker"):
                house.start_worker(name)
            else:
                house.start(name, *house.processes[name].command[1:])
            house.harm.append(f"{name} has the {code['CHAOS_CODE']} code")
            site.pause(1)
        site.pause(5)


class NotHere(Exception):
    """This machine cannot have the fault; the message says what is missing."""


def of(side: str) -> list[str]:
    """The names of the cells that a side goes through."""
    return [cell.name for cell in CELLS.values() if side == TAILRACE or cell.plain]

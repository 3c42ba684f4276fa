"""Processes are killed, stopped and started."""

import signal
import time

from tests.chaos.apps import LEASE
from tests.chaos.cells.base import Site, at_work, cell


@cell("worker", plain=True)
def worker(site: Site) -> None:
    """kill -9 a worker with its children, five times."""
    for _ in range(5):
        site.deployment.kill(at_work(site))
        site.pause(2)


@cell("child", plain=True)
def child(site: Site) -> None:
    """kill -9 a child of a worker, ten times."""
    for _ in range(10):
        site.deployment.kill_child(at_work(site))
        site.pause(1)


@cell("web", plain=True)
def web(site: Site) -> None:
    """kill -9 the web server that publishes, four times."""
    for _ in range(4):
        site.deployment.kill("web")
        site.pause(3)


@cell("beat", goes_on={"chaos.one": 50, "chaos.flaky": 5, "chaos.slot": 3})
def beat(site: Site) -> None:
    """kill -9 each beat, then none runs for 10 s."""
    names = ("beat1", "beat2")
    for name in names:
        site.deployment.kill(name)
        site.pause(3)
    for name in names:
        site.deployment.halt(name)
    site.deployment.faults.append("no beat")
    with site.holding():
        site.pause(10)
    for name in names:
        site.deployment.start_beat(name)


@cell("beats")
def beats(site: Site) -> None:
    """A third and a fourth beat beside the two."""
    for name in ("beat3", "beat4"):
        site.deployment.start_beat(name)
    site.deployment.faults.append("two beats more")
    site.pause(6)
    for name in ("beat3", "beat4"):
        site.deployment.halt(name)


@cell("stop", plain=True)
def stop(site: Site) -> None:
    """SIGSTOP a worker past its leases, then SIGCONT."""
    name = at_work(site)
    site.deployment.signal_all(name, signal.SIGSTOP)
    site.deployment.faults.append(f"SIGSTOP {name}")
    time.sleep(LEASE + max(8 * site.scale, 3))
    site.deployment.signal_all(name, signal.SIGCONT)

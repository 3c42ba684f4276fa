"""Several faults at once, and a deploy under load."""

import time
from dataclasses import replace

from tests.chaos.cells.base import CELLS, Site, at_work, cell


@cell("poller")
def poller(site: Site) -> None:
    """The backend tells 2,000 things in 15 s, while workers are killed and the broker forgets."""
    for step in range(20):
        site.load.notify(int(100 * site.scale) or 1)
        if step % 4 == 1:
            site.deployment.kill(at_work(site))
        if step % 8 == 3:
            site.deployment.engines.flush()
            site.deployment.faults.append("flushed")
        site.pause(0.75)


MIXED = (
    "worker child child beat stop cut pg-fast pg-immediate flush flush redis-restart web".split()
)


@cell("mixed")
def mixed(site: Site) -> None:
    """All of these at random for 45 s, several at once, and no fewer on a slow machine."""
    until = time.monotonic() + 45 * site.scale
    least = len(site.deployment.faults) + 5
    brief = replace(site, scale=0.1)
    bag = list(MIXED)
    while time.monotonic() < until or len(site.deployment.faults) < least:
        if not bag:
            bag = list(MIXED)
        CELLS[bag.pop(site.deployment.random.randrange(len(bag)))].act(brief)
        site.pause(site.deployment.random.uniform(0, 3))


@cell("deploy")
def deploy(site: Site) -> None:
    """Old and new code side by side; a handler goes, one comes, payloads change; and back."""
    deployment = site.deployment
    new, old = {"CHAOS_CODE": "new"}, {"CHAOS_CODE": "old"}
    for code in (new, old):
        deployment.environment |= code
        deployment.manage("migrate", "-v0")
        for name in ("worker3", "web", "worker2", "beat1", "worker1", "beat2"):
            deployment.halt(name)
            if name.startswith("worker"):
                deployment.start_worker(name)
            else:
                deployment.start(name, *deployment.processes[name].command[1:])
            deployment.faults.append(f"{name} has the {code['CHAOS_CODE']} code")
            site.pause(1)
        site.pause(5)

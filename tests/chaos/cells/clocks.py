"""Machines with a wrong clock."""

import shutil

from tests.chaos.cells.base import FaultUnavailable, Site, cell


@cell("clock", goes_on={"chaos.one": 50, "chaos.slot": 9})
def clock(site: Site) -> None:
    """A worker's clock is 5 minutes ahead, a beat's 5 minutes behind; then all others rest."""
    if not shutil.which("faketime"):
        raise FaultUnavailable("faketime is not installed; scripts/install-system-packages does it")
    deployment = site.deployment
    before, after = deployment.processes["worker3"], deployment.processes["beat2"]
    deployment.halt("worker3")
    deployment.halt("beat2")
    deployment.start_worker("worker3", "faketime", "-f", "+300s", CHAOS_AHEAD="300")
    deployment.start("beat2", "-f", "-300s", *after.command, command="faketime")
    deployment.faults.append("clocks wrong")
    right = ("worker1", "worker2", "beat1")
    with site.holding():
        site.pause(8)
        for name in (*right, "beat2"):  # now the worker that is ahead does all the upkeep
            deployment.halt(name)
        deployment.faults.append("one clock left, and it is wrong")
        site.pause(12)
    for name in right:
        deployment.start(name, *deployment.processes[name].command[1:])
    for name, process in (("worker3", before), ("beat2", after)):
        deployment.halt(name)
        deployment.start(name, *process.command[1:])

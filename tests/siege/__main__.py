"""`make siege`: start the platform, attack it, and print how long /healthz took meanwhile.

ATTACK=logins,pictures chooses. The status is 1 if an answer of /healthz took more than a second, or
was not 200. While others claim space for bodies, or send imports that would take much memory, the
same is asked of a user's own.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from tests.servers.platform import ROOT, Platform, running_platform
from tests.servers.raw import conversing, read_request
from tests.servers.web import silent_port
from tests.siege.attacker import Attacker
from tests.siege.attacks import (
    ATTACKS,
    PATIENCE_SECONDS,
    Answers,
    Target,
    endless_names,
    silent_claims,
    silent_imports,
)

LIMIT_SECONDS = 1.0
START_SECONDS = 180.0
CALM_SECONDS = 5.0
"""Without an attack, before the first one."""


@dataclass(frozen=True)
class Probe:
    """What is asked meanwhile. `status` is what its answers have to be; empty: it is only for
    comparison. With `length`, a user sends a body."""

    path: str
    status: str = ""
    length: int = 0

    def __str__(self) -> str:
        return f"{self.path}, {self.length:,} bytes" if self.length else self.path


HEALTH = [Probe("/healthz", "200"), Probe("/healthz/live", "200")]
ALWAYS = [*HEALTH, Probe("/accounts/login/")]
OF_USERS = [Probe("/api/feeds", "400", 100_000), Probe("/api/imports", "100", 2_000_000_000)]
"""A body that is not JSON, and a large body, which may come."""


def probes(attack: Callable[[Target], Answers] | None) -> list[Probe]:
    if attack in (silent_claims, silent_imports):
        return ALWAYS + OF_USERS
    return ALWAYS + OF_USERS[:1] if attack is endless_names else ALWAYS


@dataclass
class Seen:
    """What was seen of one address during one attack."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    def most(self) -> float:
        return max(self.seconds, default=float("inf"))

    def __str__(self) -> str:
        p99 = self.most()
        if len(self.seconds) > 1:
            p99 = quantiles(self.seconds, n=100, method="inclusive")[98]
        return f"{p99:.3f} / {self.most():.3f} s, {words(self.statuses)}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="siege", description=__doc__)
    parser.add_argument("--attack", default="", help=", ".join(each.__name__ for each in ATTACKS))
    parser.add_argument("--hold", type=float, default=15.0, help="seconds of half-open connections")
    arguments = parser.parse_args()
    chosen = arguments.attack.split(",") if arguments.attack else [a.__name__ for a in ATTACKS]
    if unknown := set(chosen) - {each.__name__ for each in ATTACKS}:
        parser.error(f"--attack {', '.join(sorted(unknown))}: there is no such attack")
    slow = []
    with besieged(arguments.hold) as target:
        for attack in [None, *(each for each in ATTACKS if each.__name__ in chosen)]:
            name = attack.__name__ if attack else "no attack"
            began = time.monotonic()
            with probed(target, probes(attack)) as seen:
                if attack is None:
                    time.sleep(CALM_SECONDS)
                answers = attack(target) if attack else Counter()
            print(f"\n{name}, {time.monotonic() - began:.0f} s: {words(answers)}")
            for probe, each in seen.items():
                print(f"  {probe!s:18} p99 / longest: {each}", flush=True)
                is_late = each.most() > LIMIT_SECONDS or set(each.statuses) != {probe.status}
                if probe.status and is_late:
                    slow.append(f"{probe} during {name}")
    print("\n" + (f"ABOVE A SECOND, OR REFUSED: {', '.join(slow)}" if slow else "/healthz held"))
    return 1 if slow else 0


def words(counts: Counter[str]) -> str:
    return ", ".join(f"{word}: {count}" for word, count in sorted(counts.items())) or "nothing sent"


@contextmanager
def besieged(hold_seconds: float) -> Iterator[Target]:
    """The running platform with its attackers."""
    with ExitStack() as stack:
        silent = stack.enter_context(silent_port())
        chattering = stack.enter_context(conversing(_interim_answers))
        platform = stack.enter_context(running_platform(WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8"))
        platform.until(
            lambda: platform.health().get("workers") == 1, START_SECONDS, "the platform is up"
        )
        urls = [f"http://127.0.0.1:{port}/" for port in (silent, chattering)]
        yield Target(f"http://127.0.0.1:{platform.web}", _attackers(platform, urls), hold_seconds)


def _attackers(platform: Platform, urls: list[str]) -> list[Attacker]:
    command = f"from tests.siege.people import make; make({urls!r})"
    made = subprocess.run(
        [sys.executable, "manage.py", "shell", "-c", command],
        cwd=ROOT, env=platform.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise SystemExit(f"siege: no accounts could be made:\n{made.stderr[-3000:]}")
    return [Attacker(**each) for each in json.loads(made.stdout.splitlines()[-1])]


def _interim_answers(peer: socket.socket) -> None:
    read_request(peer)
    while True:
        peer.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")


@contextmanager
def probed(target: Target, probes: list[Probe]) -> Iterator[dict[Probe, Seen]]:
    """Send each of the probes all the time; what was seen is there when the block has ended."""
    seen = {probe: Seen() for probe in probes}
    with ExitStack() as stack:
        logs = {probe: stack.enter_context(tempfile.NamedTemporaryFile("w+")) for probe in probes}
        probers = []
        for number, (probe, log) in enumerate(logs.items(), start=1):
            words = [sys.executable, "-m", "tests.siege.prober", target.url + probe.path]
            if probe.length:
                words += [target.attackers[-number].tokens[0], str(probe.length)]
            probers.append(subprocess.Popen(words, cwd=ROOT, stdout=log))
        for log in logs.values():
            _wait_for_a_line(log.name)
        yield seen
        for log in logs.values():
            _wait_for_a_line(log.name)  # of the request that runs now: it may be the slow one
        for prober in probers:
            prober.terminate()
            prober.wait()
        for probe, log in logs.items():
            whole = Path(log.name).read_text().rpartition("\n")[0]
            for seconds, status in map(json.loads, whole.splitlines()):
                seen[probe].seconds.append(seconds)
                seen[probe].statuses[status] += 1


def _wait_for_a_line(path: str) -> None:
    size, until = os.path.getsize(path), time.monotonic() + 2 * PATIENCE_SECONDS
    while os.path.getsize(path) == size:
        if time.monotonic() > until:
            raise TimeoutError("the prober does not go on")
        time.sleep(0.02)


if __name__ == "__main__":
    raise SystemExit(main())

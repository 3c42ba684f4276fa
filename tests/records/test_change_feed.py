"""The feed of changes: events of one timestamp, by pages, while other processes write."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tailrace.domains.records.depositions.submit import submit
from tailrace.events.models import Event
from tests import forks
from tests.kit import ROOT, wait_for_older_transactions, wait_until
from tests.records.kit import harvested, source
from tests.web.program import Program, program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
COUNT, PAGE = 1000, 50
WRITER = """
import random, sys
import django; django.setup()
from django.db import transaction
from tailrace.domains.records.depositions.submit import submit
from tests.records.kit import draft
title = f"of writer {sys.argv[1]}"
with transaction.atomic():
    submit([draft(title)])
    print("written", flush=True)
    sys.stdin.readline()
dice = random.Random(sys.argv[1])
for _ in range(15):
    with transaction.atomic():
        submit([draft(title) for _ in range(dice.randint(1, 5))])
        transaction.set_rollback(dice.random() < 0.3)
"""
"""It keeps its first event uncommitted until its input ends."""


@contextmanager
def writer(name: str, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Start a process that writes events, once it has written its first."""
    with forks.Fork(
        ["-c", WRITER, name],
        cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout
            assert process.stdout.readline() == "written\n"
            yield process
        finally:
            process.kill()


class Reader:
    """Reads the feed from where it was, and keeps the ids of all events that it got."""

    def __init__(self, who: Program) -> None:
        self.who, self.ids = who, list[int]()
        self.query: dict[str, Any] = {"limit": PAGE}

    def read(self) -> None:
        more = True
        while more:
            page = self.who.get("/events", **self.query).json()
            assert len(page["events"]) <= PAGE
            self.ids += [event["id"] for event in page["events"]]
            self.query["after"], more = page["next"], page["more"]

    def read_while(self, writers: Sequence[subprocess.Popen[str]]) -> None:
        """Let these processes commit what they wrote, and read until they have ended."""
        for process in writers:
            assert process.stdin
            process.stdin.close()
        wait_until(lambda: self.read() or all(process.poll() is not None for process in writers))
        assert {process.returncode for process in writers} == {0}
        self.read()


def test_a_thousand_events_of_one_time_are_read_once_while_others_are_written(
    settings: Any, process_env: dict[str, str]
) -> None:
    settings.API_RATE = settings.API_BURST = settings.USER_RATE = settings.USER_BURST = 1_000_000
    reader = Reader(
        program(
            "ana",
            "events:read",
            may=("tailrace_events.view_event", "tailrace_records.view_deposition"),
        )
    )
    submit(harvested(COUNT, source()))
    assert Event.objects.values("recorded_at").distinct().count() == 1
    with writer("late", process_env) as late:
        with writer("1", process_env) as first, writer("2", process_env) as second:
            reader.read_while([first, second])
        # What it wrote before all others is committed after them.
        reader.read_while([late])
    wait_for_older_transactions()
    reader.read()
    assert len(reader.ids) > COUNT
    assert sorted(reader.ids) == list(Event.objects.order_by("id").values_list("id", flat=True))

"""The recipes of docs/how-to/flows.md: the code blocks are run as they are written there."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core import mail

from tailrace.environment.discovery import subclasses
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.flows.operations import cancel_flow
from tailrace.jobs.flows.state import FlowState
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Flow, Job
from tailrace.jobs.testing import Clock, perform, run_flow
from tailrace.jobs.testing.perform import claimed, run_and_settle
from tests.jobs.flows.kit import states
from tests.kit import ROOT

pytestmark = pytest.mark.django_db

PAGE = ROOT / "docs/how-to/flows.md"
HEADING = re.compile(r"^### (\d)\. ", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Agency:
    """A travel agency, in which a thing may be booked up."""

    def __init__(self, booked_up: str = "") -> None:
        self.booked_up = booked_up
        self.bookings: dict[int, str] = {}
        self.cancelled: list[str] = []

    def book(self, what: str, request_id: int) -> int:
        if what == self.booked_up:
            raise LookupError(f"no {what} is free")
        self.bookings[request_id] = what
        return request_id

    def cancel(self, booking: int) -> None:
        self.cancelled.append(self.bookings.pop(booking))


def blocks() -> dict[int, list[str]]:
    """Return the code blocks of each recipe by its number; the imports have the number 0. Their
    lines have the same numbers as in the page."""
    page = PAGE.read_text()
    found: dict[int, list[str]] = {}
    for block in BLOCK.finditer(page, page.index("## Recipes")):
        numbers = HEADING.findall(page, 0, block.start())
        lines_before = "\n" * page.count("\n", 0, block.start(1))
        found.setdefault(int(numbers[-1]) if numbers else 0, []).append(lines_before + block[1])
    return found


Start = Callable[..., NewFlow]


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    """The names of the page after its imports and its handlers; the handlers exist only here."""
    known = set(subclasses(Handler))
    names: dict[str, Any] = {"__name__": "tests.jobs.flows.recipes"}
    for _number, (block, *_rest) in sorted(blocks().items()):
        execute(block, names)
    registry.clear()
    yield names
    for cls in set(subclasses(Handler)) - known:
        cls.name = ""
    registry.clear()


def execute(block: str, names: dict[str, Any]) -> None:
    exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102


@pytest.fixture
def start(names: dict[str, Any]) -> Start:
    """Return `start(number, **values)`: enqueues the flow of a recipe, and returns it."""

    def start_flow(number: int, **values: Any) -> NewFlow:
        names.update(values)
        execute(blocks()[number][1], names)
        flow: NewFlow = names["flow"]
        return flow

    return start_flow


def result_of(flow: NewFlow | Flow, name: str) -> Any:
    id = flow.id if isinstance(flow, NewFlow) else flow.pk
    return Job.objects.get(flow_id=id, flow_name=name).result


def test_each_block_of_the_recipes_is_run() -> None:
    counts = {number: len(texts) for number, texts in blocks().items()}
    assert counts == {0: 1, 1: 2, 2: 2, 3: 2, 4: 2, 5: 1}


def test_a_chain_passes_results_on(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "sales"
    file.write_text("19\n5\n30\n")
    flow = start(1, file=file)
    assert run_flow(flow).counts == {"completed": 3}
    assert result_of(flow, "add_up") == {"sales": 3, "total": 54}
    assert [message.body for message in mail.outbox] == ["54 euros"]


def test_a_callback_gets_counts_and_results(start: Start, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("web.log", "gone.log", "worker.log")]
    for file in files[::2]:
        file.write_text("ERROR\nINFO\nERROR\n")
    flow = start(2, files=files)
    assert run_flow(flow).state == FlowState.WITH_FAILURES
    assert result_of(flow, "report_errors") == {"errors": 4, "unread": 1}


def test_a_saga_cancels_what_was_booked(start: Start) -> None:
    travel = Agency(booked_up="car")
    flow = start(3, travel=travel)
    assert run_flow(flow, may_fail=True).state == FlowState.WITH_FAILURES
    assert states(flow) == {
        "book": "completed", "book-2": "completed", "book-3": "failed",
        "cancel_bookings": "completed",
    }  # fmt: skip
    assert travel.cancelled == ["hotel", "flight"]


def test_a_saga_without_a_failure_cancels_nothing(start: Start) -> None:
    travel = Agency()
    flow = start(3, travel=travel)
    assert run_flow(flow).state == FlowState.COMPLETED
    assert states(flow)["cancel_bookings"] == "skipped"
    assert [*travel.bookings.values()] == ["flight", "hotel", "car"]


def test_a_cancelled_saga_cancels_what_was_booked(start: Start) -> None:
    travel = Agency()
    flow = start(3, travel=travel)
    run_and_settle([claimed(Job.objects.get(flow_id=flow.id, flow_name="book").pk)])
    cancel_flow(Flow.objects.get(pk=flow.id), "Ann")
    assert run_flow(flow).state == FlowState.CANCELLED
    assert travel.cancelled == ["flight"]


def test_a_crawl_ends_with_its_callback(start: Start, tmp_path: Path) -> None:
    for name, size in {"a": 1, "b/c": 2, "b/d/e": 4, "f/g": 8}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
    flow = start(4, folder=tmp_path)
    assert run_flow(flow).counts == {"completed": 5}
    assert result_of(flow, "record_size") == {"folders": 4, "bytes": 15}


def test_a_night_has_one_flow_and_ends_in_the_morning(
    names: dict[str, Any], tmp_path: Path, clock: Clock
) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text("ERROR\n")
    names["logs"] = tmp_path
    first, second = (perform("shop.start_night").result for _ in range(2))
    assert first == {"flow": second["flow"], "is_new": True}
    assert not second["is_new"]
    flow = Flow.objects.get(pk=first["flow"])
    clock.step(5 * 3600 + 1)
    sweep.sweep(["flows.deadline_passed"])
    flow.refresh_from_db()
    assert run_flow(flow).state == FlowState.OVERDUE
    assert result_of(flow, "report_errors") == {"errors": 0, "unread": 0}

"""The chain of an event: its causes, its effects, and the jobs of each."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.events.models import Event
from tailrace.jobs.platform.inspection.details.chain import (
    MAX_EFFECTS,
    MAX_EVENTS,
    MAX_JOBS,
    MAX_LEVELS,
    chain_of,
)
from tests.jobs import operators

pytestmark = pytest.mark.django_db


def event(cause: Event | None = None, type: str = operators.LampLit.name) -> Event:
    number = Event.objects.count()
    return Event.objects.create(source="test", source_id=str(number), type=type, cause=cause)


def shown(event: Event, user: User | None = None) -> list[tuple[int, int]]:
    """Return level and id of the events of its chain."""
    return [(level, node.event.pk) for level, node in chain_of(event.pk, user).nodes()]


def test_a_small_chain_is_whole_from_each_of_its_events() -> None:
    root = event()
    left, right = event(root), event(root)
    leaf = event(left)
    tree = [(0, root.pk), (1, left.pk), (2, leaf.pk), (1, right.pk)]
    assert [shown(each) for each in (root, left, right, leaf)] == [tree] * 4


def test_of_a_large_chain_the_causes_and_the_effects_are_shown() -> None:
    root = event()
    middle = [event(root) for _ in range(MAX_EFFECTS + 1)]
    leaf = event(middle[-1])
    chain = chain_of(leaf.pk, None)
    assert shown(leaf) == [(0, root.pk), (1, middle[-1].pk), (2, leaf.pk)]
    assert [node.has_more_effects for _, node in chain.nodes()] == [True, False, False]


def test_a_chain_is_bounded_whatever_it_has() -> None:
    root = event()
    parents = [root]
    for _ in range(2):
        parents = Event.objects.bulk_create(
            Event(source=f"of {parent.pk}", source_id=str(n), type="test.a", cause=parent)
            for parent in parents
            for n in range(MAX_EFFECTS + 1)
        )
    for number in range(MAX_JOBS + 1):
        operators.job("completed", event=root, routing_key=str(number))
    with CaptureQueriesContext(connection) as statements:
        chain = chain_of(root.pk, None)
    nodes = [node for _, node in chain.nodes()]
    assert len(nodes) == MAX_EVENTS + 1
    assert nodes[0].has_more_effects
    assert (len(nodes[0].jobs), nodes[0].has_more_jobs) == (MAX_JOBS, True)
    assert len(statements) < 20


def test_a_long_line_and_a_circle_end() -> None:
    line = [event()]
    for _ in range(3 * MAX_LEVELS):
        line.append(event(line[-1]))
    assert len(shown(line[30])) == 2 * MAX_LEVELS + 1
    first, second = event(), event()
    Event.objects.filter(pk=first.pk).update(cause=second)
    Event.objects.filter(pk=second.pk).update(cause=first)
    assert {id for _, id in shown(first)} == {first.pk, second.pk}


def test_events_that_one_may_not_read_are_left_out_with_their_jobs() -> None:
    root = event()
    hidden = event(root, "events.quarantined")
    leaf = event(hidden)
    operators.job("failed", event=hidden, routing_key="secret")
    reader = User.objects.create_user("reader")
    assert shown(root, reader) == [(0, root.pk), (1, leaf.pk)]
    assert shown(root) == [(0, root.pk), (1, hidden.pk), (2, leaf.pk)]


def test_an_event_has_the_state_of_its_jobs() -> None:
    root = event()
    settled, failed = event(root), event(root)
    operators.job("completed", event=settled)
    operators.job("failed", event=failed)
    operators.job("pending", event=failed, routing_key="b")
    chain = chain_of(root.pk, None)
    assert [node.state for _, node in chain.nodes()] == ["no jobs", "settled", "has failures"]
    assert chain.is_under_way()
    own = chain_of(root.pk, None, handlers="no.such")
    assert {node.state for _, node in own.nodes()} == {"no jobs"}

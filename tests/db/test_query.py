"""Statements take named parameters and the clock, and return rows or their number."""

import pytest

from tailrace.db import clock
from tailrace.db.query import execute, prepared, query
from tailrace.jobs.models import Queue

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("run", [query, prepared])
def test_rows_are_returned(run):
    assert run("SELECT %(a)s::int, %(b)s::text", a=1, b="x") == [(1, "x")]


@pytest.mark.parametrize("run", [query, prepared])
def test_statement_uses_the_clock_of_tests(run, monkeypatch):
    monkeypatch.setattr(clock, "offset", 3600.0)
    [(seconds,)] = run(f"SELECT extract(epoch FROM {clock.NOW} - statement_timestamp())::int")
    assert seconds == 3600


@pytest.mark.parametrize("run", [query, prepared])
def test_doubled_percent_sign_is_one(run):
    assert run("SELECT 'ab' LIKE 'a%%'") == [(True,)]


def test_number_of_changed_rows_is_returned():
    Queue.objects.bulk_create([Queue(name="a"), Queue(name="b")], ignore_conflicts=True)
    assert (
        execute("DELETE FROM tailrace_jobs_queue WHERE name = ANY(%(names)s)", names=["a", "b"])
        == 2
    )
    assert (
        execute("DELETE FROM tailrace_jobs_queue WHERE name = ANY(%(names)s)", names=["a", "b"])
        == 0
    )

"""Thousands of recipients of one event take few statements."""

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import Notification
from tailrace.subscriptions.notifications.audience import history
from tailrace.subscriptions.types.roles import Receivers
from tests.subscriptions.sample_domain import FIRST, holders, publish_event, subscribe

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
MANY = 3_000


def bulk(query: str) -> bool:
    """Whether it is an insert of up to 1,000 rows, or begins or ends a transaction."""
    return bool(re.match(r"INSERT INTO|BEGIN|COMMIT|SAVEPOINT|RELEASE", query))


def test_thousands_of_recipients_take_few_statements(run_jobs) -> None:
    User.objects.bulk_create(
        [User(username=f"u{n}", email=f"u{n}@example.org") for n in range(MANY)], batch_size=2000
    )
    with connection.cursor() as cursor:
        # As autovacuum does within a minute. It may have analysed the table while it was empty but
        # for dead rows of other tests; then the planner takes it for one that stays empty.
        cursor.execute("ANALYZE auth_user")
    holders[FIRST] = Receivers.of(f"u{n}" for n in range(MANY))
    event = publish_event()
    with CaptureQueriesContext(connection) as queries:
        run_jobs("subscriptions.notify")
    statements = [row["sql"].strip() for row in queries]
    work = [sql for sql in statements if "subscriptions_" in sql or "auth_" in sql]
    others = [sql for sql in work if not bulk(sql)]
    assert len(others) <= 8, "\n".join(sql[:200] for sql in others)
    inserts = [sql for sql in work if sql.startswith("INSERT INTO")]
    assert len(inserts) <= 2 * MANY / 1000, f"{len(inserts)} inserts"
    assert Notification.objects.filter(event_id=event.id).count() == MANY
    for queue in ("mail", "web"):
        jobs = Job.objects.filter(event_id=event.id, handler=f"subscriptions.{queue}")
        assert jobs.count() == MANY


def test_a_months_events_of_a_row_are_found_through_indexes(clock) -> None:
    """Among a hundred thousand others: the plan reads none but those of its types."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject,"
            " payload, occurred_at, recorded_at, actor, trace_parent, problem)"
            " SELECT 'bulk', n::text, CASE WHEN n % 1000 = 0 THEN 'stage.gala' ELSE 'stage.silence'"
            " END, 1, 'x', '{}', now() - make_interval(secs => 5000000 - n * 50),"
            " now() - make_interval(secs => 5000000 - n * 50), '', '', ''"
            " FROM generate_series(1, 100000) n"
        )
        cursor.execute("ANALYZE tailrace_events_event")
    row = subscribe("stage.gala", FIRST, "mail", user=User.objects.create(username="ann"))
    events = Event.objects.filter(type__in=history.types_of(row), id__gt=0).order_by("id")
    plan = events[: history.PAGE_SIZE].explain()
    assert "Seq Scan" not in plan, plan
    assert "event_type" in plan, plan

"""Users, a queue, events and jobs for the tests of the admin and the overview."""

import re
from collections.abc import Sequence
from datetime import timedelta

from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tailrace.db import clock
from tailrace.events.types import EventType
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.maintenance.workers.code_version import code_version
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job, Pulse, Queue


class LampLit(EventType):
    """A lamp was lit."""

    name = "operators.lamp_lit"


class Trim(Handler):
    """Trim the wick."""

    name = "operators.trim"
    max_attempts = 3

    def handle(self, job: object) -> None:
        return None


def register_handlers() -> None:
    registry.clear()
    sync_declared.sync()


def client(name: str, *permissions: str, staff: bool = True) -> Client:
    """Return a logged-in client of a new user with these permissions (`app.codename`)."""
    user = User.objects.create_user(name, password=None, is_staff=staff)
    for permission in permissions:
        app, codename = permission.split(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    client = Client()
    client.force_login(user)
    return client


def job(state: str = "failed", **fields: object) -> Job:
    return Job.objects.create(handler=Trim.name, state=state, **fields)


def fill_tables(events: int, jobs_per_event: int = 1, failed_each: int = 1000) -> None:
    """Fill the tables with finished jobs and a few failed ones, and analyze them."""
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject,
                 payload, actor, trace_parent, problem, recorded_at, occurred_at)
               SELECT 'test', g::text, 'operators.' || (g %% 20), 1, 'home:user' || (g %% 5000),
                 '{"secret": "treasure"}', '', '', CASE WHEN g %% 5000 = 0 THEN 'odd' ELSE '' END,
                 now() - make_interval(secs => %(events)s - g), now()
               FROM generate_series(1, %(events)s) g""",
            {"events": events},
        )
        cursor.execute(
            """INSERT INTO tailrace_jobs_job (handler, event_id, routing_key, state, priority, lane,
                 attempt, claim_no, worker, isolate, progress_note, error, cancel_requested,
                 finished_at)
               SELECT 'operators.' || (n %% 5), e.id, n::text,
                 CASE WHEN e.id %% %(failed)s = 0 THEN 'failed' ELSE 'completed' END, 1,
                 'lane' || (e.id %% 100), 1, 1, '', false, '', '', false, now()
               FROM tailrace_events_event e, generate_series(1, %(jobs)s) n WHERE e.id %% 7 <> 0""",
            {"jobs": jobs_per_event, "failed": failed_each},
        )
        cursor.execute("ANALYZE tailrace_events_event")
        cursor.execute("ANALYZE tailrace_jobs_job")


def sequential_scans(statements: Sequence[str], *tables: str) -> list[str]:
    """Return those of the SELECTs whose plan reads one of the tables from end to end."""
    scans = []
    with connection.cursor() as cursor:
        # Those and their partitions, without what has few pages: to walk over that costs nothing.
        cursor.execute(
            "SELECT relname FROM pg_class WHERE pg_relation_size(oid) > 80000 AND"
            " coalesce(pg_partition_root(oid), oid) = ANY(%s::regclass[])",
            [list(tables)],
        )
        big = {name for (name,) in cursor.fetchall()}
        for statement in statements:
            if not re.match(r"\s*(SELECT|WITH)", statement):
                continue
            cursor.execute("EXPLAIN " + statement.replace("%", "%%"), [])
            plan = "\n".join(row[0] for row in cursor.fetchall())
            if big & set(re.findall(r"Seq Scan on (\w+)", plan)):
                scans.append(f"{statement}\n{plan}")
    return scans


def statements(client: Client, address: str) -> list[str]:
    """Return the statements of a page, which must have the status 200."""
    with CaptureQueriesContext(connection) as captured:
        response = client.get(address)
    assert response.status_code == 200, address
    return [query["sql"] for query in captured.captured_queries]


def worker(
    node: str, *, pid: int = 1, children: Sequence[int] = (101,), seen: float = 0, **facts: object
) -> Pulse:
    """Create the heartbeat of a worker on `host`, which serves all queues, `seen` seconds ago. With
    `stopping=False` it is silent soon."""
    processes = [{"pid": child, "memory": 60 * 1024**2} for child in children]
    known = {
        "node": node,
        "host": "host",
        "pid": pid,
        "pool": "prefork",
        "concurrency": len(children),
        "memory": 80 * 1024**2,
        "processes": processes,
        "started_at": clock.now().isoformat(),
        "code": code_version().digest,
    }
    return Pulse.objects.create(
        name=f"worker:{node} host:{pid}",
        at=clock.now() - timedelta(seconds=seen),
        queues=list(Queue.objects.values_list("name", flat=True)),
        facts=known | facts,
    )


def runs(child: int, seconds: float = 60, **fields: object) -> Job:
    """Create a job that this process of `host` has run for so long."""
    return job(
        "running",
        worker=f"host:{child}:abc",
        started_at=clock.now() - timedelta(seconds=seconds),
        lease_until=clock.now() + timedelta(seconds=60),
        **fields,
    )


def due(seconds: float = 60, **fields: object) -> Job:
    """Create a pending job that has been due for so long."""
    return job("pending", due_at=clock.now() - timedelta(seconds=seconds), **fields)

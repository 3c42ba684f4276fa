"""What somebody got who reads dumps, logs, queues, mails or error reports: no watched SSN."""

import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from celery import current_app
from django.db import connection

from tailrace.domains.protection.models import Alert, Exposure, WatchlistItem
from tailrace.domains.protection.services.watchlist import items
from tailrace.jobs.runtime import report
from tailrace.net import encryption
from tests.protection.kit import customer, scan
from tests.servers.hibp import make_breach
from tests.servers.web import Response
from tests.web.visitor import Visitor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]
SSN = "219-09-9999"
FORMS = (SSN, SSN.replace("-", ""), SSN.replace("-", " "), "219-09")
reported: list[report.Failure] = []


def keep(failure: report.Failure) -> None:
    reported.append(failure)


@pytest.fixture(autouse=True)
def _reporters(settings: Any) -> Iterator[None]:
    settings.JOBS_ERROR_REPORTERS = ["tailrace.jobs.runtime.report.to_log", f"{__name__}.keep"]
    report.reporters.cache_clear()
    reported.clear()
    yield
    report.reporters.cache_clear()


def all_rows() -> str:
    """Return each row of each table of the database as text, also of tables without a model."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        rows = []
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT t::text FROM {table} t")
            rows += [row for (row,) in cursor.fetchall()]
    return "\n".join(rows)


def all_keys() -> str:
    """Return what the broker holds."""
    with current_app.connection_for_read() as broker:
        client = broker.default_channel.client
        read = {
            b"string": client.get,
            b"list": lambda key: client.lrange(key, 0, -1),
            b"set": client.smembers,
            b"hash": client.hgetall,
            b"zset": lambda key: client.zrange(key, 0, -1),
        }
        keys = list(client.scan_iter(count=1000))
        kinds = {key: client.type(key) for key in keys}
        return repr([(key, read[kind](key)) for key, kind in kinds.items() if kind in read])


def test_an_ssn_stood_somewhere(hibp, run_jobs, smtp, caplog, capfd, clock) -> None:
    caplog.set_level("DEBUG")
    ann = customer("ann")
    visitor = Visitor(ann)
    assert visitor.post("/protection/watchlist", {"kind": "ssn", "value": SSN}).status_code == 302
    wrong = visitor.post("/protection/watchlist", {"kind": "ssn", "value": f"{SSN}9"})
    assert wrong.status_code == 422
    items.add(ann.pk, "email", "ann@example.org")
    hibp.add(make_breach("Adobe", "Social security numbers"), "*")
    scan(ann, run_jobs)
    run_jobs()
    hibp.faults["/"] = Response(500)
    clock.step(86_400)
    scan(ann, run_jobs)
    WatchlistItem.objects.filter(kind="email").update(value="gAAAA-of-another-key")
    clock.step(86_400)
    scan(ann, run_jobs)  # the value cannot be decrypted
    items.add(ann.pk, "username", "ann")
    hibp.faults.clear()
    hibp.key = "0" * 32
    clock.step(86_400)
    scan(ann, run_jobs)  # fails: the key is wrong
    paths = [f"/protection/{name}" for name in ("", "watchlist", "exposures")]
    pages = [page.content.decode() for page in (*map(visitor.get, paths), wrong)]
    item = WatchlistItem.objects.get(kind="ssn")
    assert encryption.decrypt(item.value) == "219099999", "it is there"
    assert (Exposure.objects.count(), Alert.objects.count()) == (1, 1)
    assert reported, "a scan failed"
    mails = [received.message.as_string() for received in smtp.received]
    written = capfd.readouterr()
    errors = "".join(
        "".join(traceback.format_exception(each.exception)) for each in reported if each.exception
    )
    places = {
        "database": all_rows(),
        "broker": all_keys(),
        "logs": caplog.text + written.out + written.err,
        "mails": "\n".join(mails),
        "error reports": repr(reported) + errors,
        "requests": repr(hibp.requests),
        "pages": "\n".join(pages),
    }
    for place, text in places.items():
        assert [form for form in FORMS if form in text] == [], place
    for place in ("database", "broker", "logs", "mails", "error reports", "requests", "pages"):
        assert places[place], place

"""Findings of a version that did not record what was announced."""

from datetime import timedelta

import pytest
from django.core.management import call_command

from tailrace.db.query import execute, query
from tailrace.domains.protection.invariants import FindingsAreAnnounced
from tailrace.domains.protection.models import Exposure, PropertyChange
from tests.protection.kit import fill_protection
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db(transaction=True)
FILES = """
SELECT relname, pg_relation_filenode(oid) FROM pg_class WHERE relkind = 'r'
  AND starts_with(relname, 'tailrace_protection_') ORDER BY 1
"""
INDEXES = """
SELECT relname FROM pg_class JOIN pg_index ON indexrelid = oid
WHERE indisvalid AND starts_with(indrelid::regclass::text, 'tailrace_protection_')
  AND (relname LIKE %(one)s OR relname LIKE %(other)s) ORDER BY 1
"""
NAMES = {"one": "%unannounced", "other": "tailrace_alert_notice%"}


def test_they_count_as_announced_and_no_table_is_rewritten(clock) -> None:
    fill_protection(person("ann"))
    indexes = query(INDEXES, **NAMES)
    assert len(indexes) == 6
    call_command("migrate", "tailrace_protection", "0001", verbosity=0)
    try:
        files = query(FILES)
        # A build of an index that was interrupted.
        execute("CREATE INDEX tailrace_alert_notice ON tailrace_protection_alert (user_id)")
        execute(
            "UPDATE pg_index SET indisvalid = false"
            " WHERE indexrelid = 'tailrace_alert_notice'::regclass"
        )
    finally:
        call_command("migrate", "tailrace_protection", verbosity=0)
    assert query(FILES) == files
    assert query(INDEXES, **NAMES) == indexes
    for model in (Exposure, PropertyChange):
        assert model.objects.get().announced_at is not None
    clock.step(timedelta(days=1).total_seconds())
    assert list(FindingsAreAnnounced().find()) == []
    new = fill_protection(person("bob"))
    assert Exposure.objects.get(pk=new.pk).announced_at is None, "the default is gone"

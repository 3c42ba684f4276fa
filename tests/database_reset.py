"""Restore the test database to its state after the migrations, after each test that commits.

Django's flush truncates every table there is and runs the receivers of post_migrate again, half a
second each time. Here only the tables that a test changed are cleared.
"""

from datetime import UTC, date, datetime, timedelta

from django.core.management import call_command
from django.db import connection

from tailrace.events.types import all_types
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.maintenance.pruning import history
from tailrace.jobs.engine.settling import settle
from tailrace.subscriptions.notifications.preferences import defaults

_KEEP = """
DROP SCHEMA IF EXISTS snapshot CASCADE;
CREATE SCHEMA snapshot;
CREATE TABLE snapshot.declared (name text);
CREATE TABLE snapshot.tables (name text, columns text, referenced bool, filled bool, hash text);

CREATE FUNCTION snapshot.hash_of(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE hash text;
BEGIN
  EXECUTE format('SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM %I t', name)
    INTO hash;
  RETURN hash;
END $$;

-- A table that foreign keys refer to cannot be truncated alone: its rows are deleted unchecked. So
-- are the rows of a small table that was not analysed: a TRUNCATE takes as long as a test, since it
-- makes all indexes anew, and all sessions plan their statements again. `most`: how many pages a
-- small table has. Tests of plans look at each page that a scan of the history reads.
CREATE FUNCTION snapshot.clear(name regclass, referenced bool, most int) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE few bool := pg_relation_size(name) <= most * 8192
  AND (SELECT reltuples < 0 FROM pg_class WHERE oid = name);
BEGIN
  EXECUTE format(CASE WHEN referenced OR few THEN 'DELETE FROM %s' ELSE 'TRUNCATE %s' END, name);
END $$;

CREATE FUNCTION snapshot.restore(days text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t record; part regclass; changed bool;
BEGIN
  PERFORM set_config('session_replication_role', 'replica', true);
  FOR part IN SELECT inhrelid FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = to_regclass('tailrace_timeline_staged_point')
      OR inhparent = 'tailrace_jobs_job'::regclass AND relname <> 'tailrace_jobs_live'
      AND relname <> ALL (days)
  LOOP
    EXECUTE format('DROP TABLE %s', part);
  END LOOP;
  -- Tables of size 0 have no rows. They are skipped, unless they were filled at first or have been
  -- analysed: see below.
  FOR t IN SELECT tables.* FROM snapshot.tables JOIN pg_class ON oid = name::regclass
    WHERE filled OR relkind = 'p' OR pg_relation_size(oid) > 0 OR reltuples >= 0 AND NOT referenced
    ORDER BY name
  LOOP
    IF t.name = 'tailrace_jobs_job' THEN  -- each partition by itself: most have stayed empty
      FOR part IN SELECT relid FROM pg_partition_tree(t.name) WHERE isleaf LOOP
        IF pg_relation_size(part) > 0 OR (SELECT reltuples >= 0 FROM pg_class WHERE oid = part) THEN
          PERFORM snapshot.clear(part, false,
            CASE part::text WHEN 'tailrace_jobs_live' THEN 4 ELSE 1 END);
        END IF;
      END LOOP;
      CONTINUE;
    END IF;
    IF t.filled THEN
      changed := snapshot.hash_of(t.name) IS DISTINCT FROM t.hash;
    ELSE
      -- The planner takes an empty table that was analysed for one that stays empty, and scans it.
      EXECUTE format('SELECT EXISTS (SELECT FROM %I) OR max(reltuples) >= 0 AND NOT %L'
                     ' FROM pg_class WHERE oid = %L::regclass',
                     t.name, t.referenced, t.name) INTO changed;
    END IF;
    CONTINUE WHEN NOT changed;
    PERFORM snapshot.clear(t.name::regclass, t.referenced, 8);
    IF t.filled THEN
      EXECUTE format('INSERT INTO %I (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM snapshot.%I',
                     t.name, t.columns, t.columns, 'kept_' || t.name);
    END IF;
  END LOOP;
END $$;
"""

_TABLE = """
INSERT INTO snapshot.tables
SELECT %(name)s,
  (SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
   WHERE table_schema = 'public' AND table_name = %(name)s AND is_generated = 'NEVER'),
  EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND confrelid = %(name)s::regclass),
  snapshot.hash_of(%(name)s) IS NOT NULL, snapshot.hash_of(%(name)s)
"""


_kept: list[str] = []
"""What was declared when the snapshot was taken."""


def keep() -> None:
    """Save a snapshot of the database after a flush, with all handlers of the test modules."""
    registry.clear()
    call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
    history.make_partitions(iter(_days()))
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with connection.cursor() as cursor:
        cursor.execute(_KEEP)
        for name in names:
            cursor.execute(_TABLE, {"name": name})
            cursor.execute(f'CREATE TABLE snapshot."kept_{name}" AS TABLE "{name}"')
        cursor.execute("INSERT INTO snapshot.declared SELECT unnest(%s::text[])", [_declared()])
    _kept[:] = _declared()


def begin() -> None:
    """Use the snapshot that the database is a copy with, or save one if it is of other modules."""
    registry.clear()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('snapshot.declared')")
        if cursor.fetchone()[0]:
            cursor.execute("SELECT name FROM snapshot.declared")
            _kept[:] = [name for (name,) in cursor.fetchall()]
    if sorted(_kept) == sorted(_declared()):
        _kept[:] = _declared()
        restore()
    else:
        keep()


def restore() -> None:
    """Restore the database to the snapshot, with the rows of later declarations."""
    with connection.cursor() as cursor:
        names = [settle.partition(day) for day in _days()]
        cursor.execute("SELECT snapshot.restore(%s)", [names])
    history.make_partitions(iter(_days()))
    settle.forget_table()
    if _declared() != _kept:
        sync_declared.sync()
        defaults.create_missing()


def _days() -> list[date]:
    """Return the days that have a partition of the history: fewer than upkeep makes, because each
    has indexes that a truncation makes anew, and enough for a test that steps over midnight."""
    today = datetime.now(UTC).date()
    return [today + timedelta(days=number) for number in range(3)]


def _declared() -> list[str]:
    """Return the names of all handlers and event types."""
    return [*sorted(registry.all_handlers()), *(each.name for each in all_types())]

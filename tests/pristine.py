"""The test database as it was after its migrations, put back after each test that commits.

Django's flush truncates every table there is and runs the receivers of post_migrate again, half a
second each time. Here what a test left is looked for, and that alone is cleared.
"""

from django.core.management import call_command
from django.db import connection

from jobs import registry, sync
from subscriptions import defaults

_KEEP = """
DROP SCHEMA IF EXISTS pristine CASCADE;
CREATE SCHEMA pristine;
CREATE TABLE pristine.tables (name text, columns text, referenced bool, filled bool, hash text);

CREATE FUNCTION pristine.hash_of(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE hash text;
BEGIN
  EXECUTE format('SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM %I t', name)
    INTO hash;
  RETURN hash;
END $$;

-- Whom foreign keys refer to cannot be truncated alone; it is deleted from, its referrers unasked.
CREATE FUNCTION pristine.restore() RETURNS void LANGUAGE plpgsql AS $$
DECLARE t record; found bool;
BEGIN
  PERFORM set_config('session_replication_role', 'replica', true);
  FOR t IN SELECT * FROM pristine.tables ORDER BY name LOOP
    IF t.filled THEN
      found := pristine.hash_of(t.name) IS DISTINCT FROM t.hash;
    ELSE
      -- An empty table that was analysed is taken for one that stays empty, and is walked.
      EXECUTE format('SELECT EXISTS (SELECT FROM %I) OR reltuples >= 0 AND NOT %L FROM pg_class'
                     ' WHERE oid = %L::regclass', t.name, t.referenced, t.name) INTO found;
    END IF;
    CONTINUE WHEN NOT found;
    EXECUTE format(CASE WHEN t.referenced THEN 'DELETE FROM %I' ELSE 'TRUNCATE %I' END, t.name);
    IF t.filled THEN
      EXECUTE format('INSERT INTO %I (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM pristine.%I',
                     t.name, t.columns, t.columns, 'kept_' || t.name);
    END IF;
  END LOOP;
END $$;
"""

_TABLE = """
INSERT INTO pristine.tables
SELECT %(name)s,
  (SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
   WHERE table_schema = 'public' AND table_name = %(name)s AND is_generated = 'NEVER'),
  EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND confrelid = %(name)s::regclass),
  pristine.hash_of(%(name)s) IS NOT NULL, pristine.hash_of(%(name)s)
"""


def keep() -> None:
    """Remember the database as it stands after a flush, with all handlers of the test modules."""
    registry.clear()
    call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with connection.cursor() as cursor:
        cursor.execute(_KEEP)
        for name in names:
            cursor.execute(_TABLE, {"name": name})
            cursor.execute(f'CREATE TABLE pristine."kept_{name}" AS TABLE "{name}"')


def restore() -> None:
    """Put the database back as it was then, with the rows of what was declared since."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pristine.restore()")
    sync.sync()
    defaults.sync()

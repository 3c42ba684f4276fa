from django.db import migrations, transaction

BATCH = 5000
LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"
DAYS = """
SELECT relname, right(relname, 8) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = 'tailrace_jobs_job'::regclass AND relname <> 'tailrace_jobs_live' ORDER BY relname
"""
# By ranges of ids, because a join has no statistics of a table that is emptied. With its day, so
# that the planner finds the one partition.
NEXT = "SELECT max(id) FROM (SELECT id FROM {name} WHERE id > %s ORDER BY id LIMIT %s) batch"
BACK = (
    "UPDATE tailrace_jobs_job SET done_on = NULL WHERE done_on = '{day}' AND id > %s AND id <= %s"
)


def bring_back(apps, schema_editor):
    """Move the history to the live partition beside the workers, so that little is left for when
    the tables are put together again under a lock. Twice, for what was moved meanwhile."""
    alias = schema_editor.connection.alias
    with schema_editor.connection.cursor() as cursor:
        for _ in range(2):
            cursor.execute(DAYS)
            for name, day in cursor.fetchall():
                beyond = 0
                while True:
                    cursor.execute(NEXT.format(name=name), [beyond, BATCH])
                    [(last,)] = cursor.fetchall()
                    if last is None:
                        break
                    with transaction.atomic(using=alias):
                        cursor.execute(LOCK_LIMIT)
                        cursor.execute(BACK.format(day=day), [beyond, last])
                    beyond = last
                # Else all that is dead would be read under that lock.
                cursor.execute(f"VACUUM {name}")


class Migration(migrations.Migration):
    """Nothing on the way there; the way back begins with it."""

    atomic = False
    dependencies = [("tailrace_jobs", "0031_when_calls_began")]

    operations = [migrations.RunPython(migrations.RunPython.noop, bring_back)]

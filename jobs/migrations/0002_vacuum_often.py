from django.db import migrations

# A job's row is rewritten twice in its life: claimed, settled. With the defaults (a fifth of the
# table) dead rows would pile up at the head of the partial indexes that every claim walks.


class Migration(migrations.Migration):
    dependencies = [("tailrace_jobs", "0001_initial")]

    operations = [
        migrations.RunSQL(
            """
            SET LOCAL lock_timeout = '5s';
            ALTER TABLE tailrace_jobs_job SET (autovacuum_vacuum_scale_factor = 0.01,
              autovacuum_vacuum_threshold = 5000, autovacuum_analyze_scale_factor = 0.02,
              autovacuum_vacuum_cost_delay = 0);
            ALTER TABLE tailrace_jobs_queue SET (fillfactor = 20, autovacuum_vacuum_threshold = 200,
              autovacuum_vacuum_scale_factor = 0);
            """,
            """
            SET LOCAL lock_timeout = '5s';
            ALTER TABLE tailrace_jobs_job RESET (autovacuum_vacuum_scale_factor,
              autovacuum_vacuum_threshold, autovacuum_analyze_scale_factor,
              autovacuum_vacuum_cost_delay);
            ALTER TABLE tailrace_jobs_queue RESET (fillfactor, autovacuum_vacuum_threshold,
              autovacuum_vacuum_scale_factor);
            """,
        )
    ]

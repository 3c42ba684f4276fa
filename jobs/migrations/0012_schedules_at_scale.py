import django.db.models.deletion
from django.db import migrations, models

LOCK_LIMIT = "SET lock_timeout = '5s'"
NO_LIMIT = "RESET lock_timeout"

# The name of the constraint depends on the version of Django that made it. Without NOT VALID, to
# put it back would read all slots while nobody may write any, and would fail if one has outlived
# its schedule.
DROP_CONSTRAINT = """
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT conname FROM pg_constraint
    WHERE conrelid = 'tailrace_jobs_slot'::regclass AND confrelid = 'tailrace_jobs_schedule'::regclass
  LOOP EXECUTE format('ALTER TABLE tailrace_jobs_slot DROP CONSTRAINT %I', name); END LOOP;
END $$
"""
ADD_CONSTRAINT = """
ALTER TABLE tailrace_jobs_slot ADD CONSTRAINT jobs_slot_schedule_id_fk_jobs_schedule_id
  FOREIGN KEY (schedule_id) REFERENCES tailrace_jobs_schedule (id) DEFERRABLE INITIALLY DEFERRED NOT VALID
"""
CREATE_INDEX = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS tailrace_schedule_owner ON tailrace_jobs_schedule (owner text_pattern_ops)
"""
DROP_INDEX = "DROP INDEX CONCURRENTLY IF EXISTS tailrace_schedule_owner"

# A schedule's row is rewritten at each of its slots. With the defaults (a fifth of the table) dead
# rows would pile up at the head of the index that every tick walks.
VACUUM_OFTEN = """
ALTER TABLE tailrace_jobs_schedule SET (autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0)
"""
VACUUM_AS_OTHERS = """
ALTER TABLE tailrace_jobs_schedule RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
  autovacuum_analyze_scale_factor, autovacuum_vacuum_cost_delay)
"""


class Migration(migrations.Migration):
    """A constant default, a constraint less, an index that is made beside the writers."""

    atomic = False
    dependencies = [("tailrace_jobs", "0011_claimed_and_begun")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, NO_LIMIT),
        migrations.AddField(
            "schedule",
            "spread",
            models.FloatField(
                db_default=0,
                default=0,
                help_text="seconds: each slot is later by a fixed part of them, which the name"
                " decides",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(DROP_CONSTRAINT, ADD_CONSTRAINT)],
            [
                migrations.AlterField(
                    "slot",
                    "schedule",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="slots",
                        to="tailrace_jobs.schedule",
                    ),
                )
            ],
        ),
        migrations.RunSQL(VACUUM_OFTEN, VACUUM_AS_OTHERS),
        migrations.RunSQL(NO_LIMIT, LOCK_LIMIT),
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(CREATE_INDEX, DROP_INDEX)],
            [
                migrations.AddIndex(
                    "schedule",
                    models.Index(
                        fields=["owner"],
                        name="tailrace_schedule_owner",
                        opclasses=["text_pattern_ops"],
                    ),
                ),
            ],
        ),
    ]

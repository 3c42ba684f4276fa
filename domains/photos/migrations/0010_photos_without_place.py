from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"
_STATES = [
    ("unplaced", "Unplaced"),
    ("new", "New"),
    ("clustered", "Clustered"),
    ("unclusterable", "Unclusterable"),
]


class Migration(migrations.Migration):
    """No row is read or written; 0011 looks at them without keeping others waiting."""

    dependencies = [("tailrace_photos", "0009_unmeasured_photos")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="photo",
            name="lat",
            field=models.FloatField(
                blank=True,
                help_text="degrees, north is positive; empty: not known yet",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="photo",
            name="lon",
            field=models.FloatField(blank=True, help_text="degrees, east is positive", null=True),
        ),
        migrations.AlterField(
            model_name="photo",
            name="state",
            field=models.TextField(choices=_STATES, default="new"),
        ),
        migrations.AddField(
            model_name="photo",
            name="placed_at",
            field=models.DateTimeField(
                blank=True, help_text="when the owner's timeline gave its place", null=True
            ),
        ),
        AddConstraintNotValid(
            "photo",
            models.CheckConstraint(
                condition=models.Q(
                    models.Q(("lat__isnull", True), ("lon__isnull", True), ("state", "unplaced")),
                    models.Q(
                        models.Q(("state", "unplaced"), _negated=True),
                        ("lat__isnull", False),
                        ("lon__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="tailrace_photo_has_a_place",
            ),
        ),
    ]

from django.db import migrations, models
from django.db.models.functions import Now

# Findings that exist already count as announced, so that an upgrade floods nobody: a default that is
# the same for all rows rewrites none of them. New findings are not announced, so the default is
# dropped again. The statements lock the tables for some milliseconds. If they must wait for a long
# transaction, they give up, so that no other session waits behind them: run `migrate` again.
LOCK = "SET LOCAL lock_timeout = '3s'"
UNLOCK = "SET LOCAL lock_timeout = DEFAULT"
ANNOUNCED = "when a notice named it; empty: its user was not notified of it yet"


def alert() -> models.ForeignKey:
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        to="tailrace_protection.alert",
    )


class Migration(migrations.Migration):
    """Findings have the alert that they joined, and the time when they were announced."""

    dependencies = [("tailrace_protection", "0001_initial")]

    operations = [
        migrations.RunSQL(LOCK, UNLOCK),
        migrations.AddField(
            "alert",
            "further_notices",
            models.IntegerField(db_default=0, default=0, help_text="notices after the first"),
        ),
        migrations.AddField(
            "alert",
            "notice_at",
            models.DateTimeField(
                blank=True,
                help_text="when the notice of findings that joined it later is due",
                null=True,
            ),
        ),
        migrations.AlterField(
            "alert",
            "announced_at",
            models.DateTimeField(
                blank=True,
                help_text="when a notice was last handed to its user's channels",
                null=True,
            ),
        ),
        migrations.AddField("alertpause", "alert", alert()),
        migrations.AddField("exposure", "alert", alert()),
        migrations.AddField("propertychange", "alert", alert()),
        migrations.AddField("removalchange", "alert", alert()),
        *(
            migrations.AddField(
                model,
                "announced_at",
                models.DateTimeField(db_default=Now(), help_text=ANNOUNCED, null=True),
            )
            for model in ("exposure", "propertychange", "removalchange")
        ),
        *(
            migrations.AlterField(
                model, "announced_at", models.DateTimeField(help_text=ANNOUNCED, null=True)
            )
            for model in ("exposure", "propertychange", "removalchange")
        ),
        migrations.RunSQL(UNLOCK, LOCK),
    ]

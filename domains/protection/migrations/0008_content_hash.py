from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"
HELP = "SHA-256 of the file: a file that is sent again is the same; empty: an older one"


def _column() -> models.TextField:
    return models.TextField(db_default="", default="", editable=False, help_text=HELP)


class Migration(migrations.Migration):
    """Constant defaults: no row is written."""

    dependencies = [("tailrace_protection", "0007_voices")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AddField("recording", "content_hash", _column()),
        migrations.AddField("voiceenrolment", "content_hash", _column()),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]

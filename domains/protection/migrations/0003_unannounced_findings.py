from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

INVALID = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid"


class AddIndex(AddIndexConcurrently):
    """Add an index without blocking writers, except in a transaction of the caller. A build that
    was interrupted is begun again."""

    def database_forwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        if schema_editor.connection.in_atomic_block:
            migrations.AddIndex.database_forwards(self, app_label, schema_editor, *states)
            return
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(INVALID, [self.index.name])
            if cursor.fetchone():
                cursor.execute(f'DROP INDEX CONCURRENTLY "{self.index.name}"')
        super().database_forwards(app_label, schema_editor, *states)

    def database_backwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        if schema_editor.connection.in_atomic_block:
            migrations.AddIndex.database_backwards(self, app_label, schema_editor, *states)
            return
        super().database_backwards(app_label, schema_editor, *states)


def index(name: str, fields: list[str], **conditions: bool) -> models.Index:
    return models.Index(fields=fields, name=name, condition=Q(**conditions))


class Migration(migrations.Migration):
    """The indexes of findings that were not announced, and of alerts whose notice is due."""

    atomic = False
    dependencies = [("tailrace_protection", "0002_announced_findings")]

    operations = [
        AddIndex(
            "alert",
            index("tailrace_alert_notice_of_user", ["user", "notice_at"], notice_at__isnull=False),
        ),
        AddIndex("alert", index("tailrace_alert_notice", ["notice_at"], notice_at__isnull=False)),
        AddIndex(
            "exposure",
            index("tailrace_exposure_unannounced", ["alert"], announced_at__isnull=True),
        ),
        AddIndex(
            "propertychange",
            index("tailrace_change_unannounced", ["alert"], announced_at__isnull=True),
        ),
        AddIndex(
            "removalchange",
            index(
                "tailrace_removal_unannounced",
                ["alert"],
                announced_at__isnull=True,
                alert__isnull=False,
            ),
        ),
    ]

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tailrace_photos", "0006_deletion")]

    operations = [
        AddIndexConcurrently(
            "photo",
            models.Index(
                condition=models.Q(("original_deleted_at", None)),
                fields=["uploaded_at"],
                name="tailrace_photo_with_original",
            ),
        ),
    ]

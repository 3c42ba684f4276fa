from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tailrace_photos", "0008_photo_sizes")]

    operations = [
        migrations.AlterField(
            model_name="photo",
            name="copy_bytes",
            field=models.BigIntegerField(
                db_default=0, help_text="of its small copy; 0: not measured; -1: there is no file"
            ),
        ),
        AddIndexConcurrently(
            "photo",
            models.Index(
                condition=models.Q(("copy_bytes", 0), ("storage_key__startswith", "uploads/")),
                fields=["id"],
                name="tailrace_photo_unmeasured",
            ),
        ),
    ]

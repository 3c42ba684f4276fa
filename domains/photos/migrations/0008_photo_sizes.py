from django.db import migrations, models


class Migration(migrations.Migration):
    """Columns with constant defaults: no row is written."""

    dependencies = [("tailrace_photos", "0007_photos_with_original")]

    operations = [
        migrations.AddField(
            model_name="photo",
            name="original_bytes",
            field=models.BigIntegerField(
                db_default=0, help_text="of the picture; 0: stored elsewhere"
            ),
        ),
        migrations.AddField(
            model_name="photo",
            name="copy_bytes",
            field=models.BigIntegerField(db_default=0, help_text="of its small copy"),
        ),
    ]

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tailrace_photos", "0010_photos_without_place")]

    operations = [
        ValidateConstraint("photo", "tailrace_photo_has_a_place"),
        AddIndexConcurrently(
            "photo",
            models.Index(
                condition=models.Q(("state", "unplaced")),
                fields=["user", "taken_at", "id"],
                name="tailrace_photo_unplaced",
            ),
        ),
    ]

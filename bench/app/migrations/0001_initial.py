from django.db import migrations, models

import bench.app.models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Effect",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("job", models.TextField()),
                ("at", models.DateTimeField(db_default=bench.app.models.ClockTimestamp())),
            ],
            options={"db_table": "bench_effect"},
        ),
    ]

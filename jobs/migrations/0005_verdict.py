from django.db import migrations, models


class Migration(migrations.Migration):
    """A permission, and the words about a column. No table changes."""

    dependencies = [
        ("tailrace_jobs", "0004_celery_tasks"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="pulse",
            options={
                "permissions": [("end_session", "Can end a session of the database that does harm")]
            },
        ),
        migrations.AlterField(
            model_name="pulse",
            name="name",
            field=models.TextField(
                help_text="worker:<node name> <host>:<process>, a turn such as tick, thread:<host>:<process> <thread>, or loss:<handler>",
                primary_key=True,
                serialize=False,
            ),
        ),
    ]

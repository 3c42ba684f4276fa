from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tailrace_events", "0003_help_texts")]

    operations = [
        migrations.AlterModelOptions(
            name="event",
            options={
                "permissions": [
                    ("view_payload", "Can view the payload of an event"),
                    ("acknowledge_event", "Can acknowledge a flagged event"),
                    (
                        "view_hidden",
                        "Can read events that are hidden, such as those of hidden projects",
                    ),
                ]
            },
        ),
    ]

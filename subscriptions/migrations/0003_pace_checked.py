from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    """Reads the rows that are there, beside those who write."""

    dependencies = [("subscriptions", "0002_every_channel")]

    operations = [ValidateConstraint("eventsubscription", "subscription_pace_of_mail")]

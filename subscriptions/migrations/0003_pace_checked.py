from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    """Reads the rows that are there, beside those who write."""

    dependencies = [("tailrace_subscriptions", "0002_every_channel")]

    operations = [ValidateConstraint("eventsubscription", "tailrace_subscription_pace_of_mail")]

from django.db import models


class BreachFeed(models.Model):
    """How far a provider's list of new breaches was read. The row exists after the first read."""

    name = models.TextField(primary_key=True)
    latest = models.TextField(help_text="the breach that was the newest")
    listed_at = models.DateTimeField(help_text="when the whole list was read")

    def __str__(self) -> str:
        return self.name

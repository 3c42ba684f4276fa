from django.db import models


class Event(models.Model):
    """A fair where people meet."""

    place = models.CharField(max_length=200)

"""`published`: sent inside the publishing transaction, `events` being a list of Recorded."""

from django.dispatch import Signal

published = Signal()

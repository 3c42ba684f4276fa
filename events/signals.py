"""The signal `published`: sent in the publishing transaction, with `events`, a list of Recorded."""

from django.dispatch import Signal

published = Signal()

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.views.decorators.debug import sensitive_variables

from tailrace.net.encryption import DecryptionError, decrypt


class Kind(models.TextChoices):
    EMAIL = "email", "email address"
    PHONE = "phone", "phone number"
    DOMAIN = "domain", "domain"
    USERNAME = "username", "user name"
    SSN = "ssn", "Social Security number"


class WatchlistItem(models.Model):
    """A value that a person watches. `services.watchlist.items` is the only writer.

    `value` is decrypted only to query a source; pages, logs and mails show `masked`.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="watchlist_items", db_index=False
    )
    kind = models.TextField(choices=Kind.choices)
    value = models.TextField(help_text="encrypted")
    value_key = models.TextField(help_text="a keyed hash of the value, to find it again")
    masked = models.TextField(help_text="the value as it is shown: a•••@example.org")
    active = models.BooleanField(default=True, db_default=True, help_text="scans look it up")
    key_ids = models.TextField(
        help_text="which keys encrypted and hashed it; those of older keys are written again"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "kind", "value_key"], name="tailrace_protection_item_once"
            )
        ]
        indexes = [
            models.Index(fields=["user", "id"], name="tailrace_protection_item_user"),
            models.Index(fields=["key_ids", "id"], name="tailrace_protection_item_keys"),
        ]

    def __str__(self) -> str:
        return f"item {self.pk}"

    @sensitive_variables()
    def readable_value(self) -> str | None:
        """Return the decrypted value; None if the key that encrypted it is lost."""
        try:
            return decrypt(self.value)
        except DecryptionError:
            return None

    @property
    def is_readable(self) -> bool:
        return self.readable_value() is not None


class ItemScan(models.Model):
    """When a source last answered a query for an item."""

    item = models.ForeignKey(WatchlistItem, models.CASCADE, related_name="scans", db_index=False)
    source = models.TextField()
    scanned_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["item", "source"], name="tailrace_protection_item_scan_once"
            )
        ]

    def __str__(self) -> str:
        return f"scan {self.pk}"

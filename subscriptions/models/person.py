from datetime import time
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, RegexValidator
from django.db import models

from tailrace.db.query import database_now
from tailrace.web.accounts.time_zones import time_zone_names


def check_time_zone(name: str) -> None:
    """Raise ValidationError if the name is not in the time zone database."""
    if name not in time_zone_names():
        raise ValidationError(f"{name!r} is not a time zone; use a name such as Europe/Berlin")


class GroupAddress(models.Model):
    """The mail address of a group; without one, mail goes to each of its members."""

    group = models.OneToOneField(Group, models.CASCADE, related_name="address", primary_key=True)
    email = models.EmailField()

    class Meta:
        verbose_name_plural = "group addresses"

    def __str__(self) -> str:
        return f"{self.group}: {self.email}"


class Preferences(models.Model):
    """How a user wants to be reached. A user without a row has the defaults."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="preferences", primary_key=True
    )
    time_zone = models.TextField(default="UTC", validators=[check_time_zone])
    digest_at = models.TimeField(default=time(8), help_text="time of daily and weekly digests")
    digest_weekday = models.PositiveSmallIntegerField(
        default=0, validators=[MaxValueValidator(6)], help_text="day of weekly digests; 0 is Monday"
    )
    phone = models.TextField(
        default="",
        blank=True,
        validators=[RegexValidator(r"^\+[1-9]\d{6,14}$", "a number such as +4930123456")],
        help_text="for text messages (E.164)",
    )
    confirmed_phone = models.TextField(
        default="",
        db_default="",
        editable=False,
        help_text="the number that was confirmed by a code; another one gets no texts",
    )
    phone_since = models.DateTimeField(
        null=True, editable=False, help_text="when the number was entered"
    )

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"preferences of {self.user}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Record when the number changes, so that reports on older texts are ignored."""
        if self.phone and not Preferences.objects.filter(pk=self.pk, phone=self.phone).exists():
            self.phone_since = database_now()
        super().save(*args, **kwargs)

    @property
    def phone_confirmed(self) -> bool:
        """Whether the number is confirmed: events may be sent to it as text messages."""
        return bool(self.phone) and self.phone == self.confirmed_phone


class PhoneCode(models.Model):
    """The code with which a user confirms a phone number. Only its hash is stored."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="phone_code", primary_key=True
    )
    phone = models.TextField()
    code_hash = models.TextField(default="", help_text="empty until a code is sent")
    expires_at = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0, help_text="wrong codes entered")
    try_after = models.DateTimeField(null=True, help_text="after a wrong code")
    requests = models.PositiveSmallIntegerField(default=0, help_text="codes that were asked for")
    request_after = models.DateTimeField(null=True, help_text="when another may be asked for")

    def __str__(self) -> str:
        return f"the code of {self.user}"

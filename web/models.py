"""API tokens, throttles of failed logins, second factors, and answered requests of the API. The
table of tokens and its permissions keep the app label `tailrace_subscriptions`, so that existing
installations need not rename them."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class ApiToken(models.Model):
    """Lets a program act for a user, within its scopes. Only the token's hash is stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    scopes = ArrayField(models.TextField())
    event_types = ArrayField(
        models.TextField(),
        default=list,
        db_default=[],
        blank=True,
        help_text="event types and families that it may record with the scope events:write",
    )
    event_source = models.TextField(
        default="",
        db_default="",
        blank=True,
        help_text="the source of the events that it records; it has no other",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        app_label = "tailrace_subscriptions"
        indexes = [
            models.Index(
                fields=["user"], name="tailrace_api_token_live", condition=Q(revoked_at=None)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"


class LoginThrottle(models.Model):
    """The failed attempts that are left without a wait, for a login, an IP address, or both.

    `slot` is a keyed hash with few possible values: the table contains no logins and stays small.
    """

    slot = models.TextField(primary_key=True)
    tries = models.FloatField(help_text="free attempts that are left; below one, the wait grows")
    failures = models.IntegerField(help_text="in a row")
    at = models.DateTimeField(help_text="time of the last attempt that counted")

    class Meta:
        default_permissions = ()
        permissions = [("view_security_log", "Can read the security log")]

    def __str__(self) -> str:
        return self.slot


class SecondFactor(models.Model):
    """The second factor of a user beside the password: the key of an authenticator app."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="second_factor", primary_key=True
    )
    key = models.TextField(help_text="encrypted")
    confirmed_at = models.DateTimeField(null=True, help_text="empty: it is not set up yet")
    last_step = models.BigIntegerField(default=0, help_text="of the last code that was accepted")
    recovery_codes = ArrayField(models.TextField(), default=list, help_text="hashes")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.user)


class AnsweredRequest(models.Model):
    """The Idempotency-Key of a user's POST to the API, and the answer once the request is done."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    key = models.TextField()
    digest = models.TextField(help_text="SHA-256 of the request that came with the key first")
    created_at = models.DateTimeField(db_default=Now())
    status = models.PositiveSmallIntegerField(null=True, help_text="empty: it is being worked on")
    location = models.TextField(default="", db_default="")
    answer = models.TextField(
        default="", db_default="", help_text="encrypted; empty: it has a secret, or is too long"
    )

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="tailrace_answered_request_once")
        ]
        indexes = [models.Index(fields=["created_at"], name="tailrace_answered_request_age")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.key}"

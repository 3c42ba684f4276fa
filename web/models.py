"""API tokens. Their table and permissions keep the app label `subscriptions`, so that no
installation has to rename them."""

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
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        app_label = "subscriptions"
        indexes = [
            models.Index(fields=["user"], name="api_token_live", condition=Q(revoked_at=None)),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"

from django.conf import settings
from django.db import models
from django.db.models import Q


class Watch(models.Model):
    """A user watches a project, a package or a request."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="watches")
    project = models.TextField(default="", blank=True)
    package = models.TextField(default="", blank=True)
    request = models.PositiveBigIntegerField(null=True, blank=True, help_text="its number")

    class Meta:
        verbose_name_plural = "watches"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "project", "package", "request"],
                name="tailrace_watched_once",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=(
                    ~Q(project="") & Q(request=None)
                    | Q(project="", package="", request__isnull=False)
                ),
                name="tailrace_watch_has_one_target",
            ),
        ]
        indexes = [
            models.Index(fields=["project", "package"], name="tailrace_watch_package"),
            models.Index(
                fields=["request"],
                name="tailrace_watch_request",
                condition=Q(request__isnull=False),
            ),
        ]
        permissions = [("moderate", "Can moderate: is notified about reports and appeals")]

    def __str__(self) -> str:
        # Without the watched project, which may be hidden: pages that confirm the deletion of a
        # user list the user's rows by this text.
        return f"watch {self.pk} of {self.user}"


class TokenHolder(models.Model):
    """A user or group that is notified about workflow runs of a token: its executor or a member."""

    class Role(models.TextChoices):
        EXECUTOR = "executor"
        MEMBER = "member"

    token = models.PositiveBigIntegerField(help_text="the token's number")
    role = models.TextField(choices=Role.choices)
    user = models.TextField(default="", blank=True, help_text="login")
    group = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["token", "role", "user", "group"], name="tailrace_token_held_once"
            ),
            models.CheckConstraint(
                condition=Q(user="") ^ Q(group=""), name="tailrace_token_held_by_user_or_group"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user or self.group}: {self.role} of token {self.token}"

from django.db import models
from django.db.models import Q

IDENTITY = tuple("backend project repository name epoch version release arch medium".split())
"""Fields that identify a binary in a repository; its content may differ."""
CONTENT = tuple("package source_project binaryid buildtime disturl supportstatus cpeid".split())
"""Fields that describe the binary's content."""


class BinaryQuerySet(models.QuerySet["Binary"]):
    def current(self) -> "BinaryQuerySet":
        """Return the binaries that their repository contains now."""
        return self.filter(modified_at=None, obsolete_at=None)


class Binary(models.Model):
    """A binary in a repository, from the release that added it until its content changed or it was
    removed."""

    class Operation(models.TextChoices):
        ADDED = "added"
        MODIFIED = "modified"

    backend = models.TextField()
    project = models.TextField(help_text="the project that released it")
    repository = models.TextField()
    name = models.TextField()
    epoch = models.TextField(default="", blank=True)
    version = models.TextField(default="", blank=True)
    release = models.TextField(default="", blank=True)
    arch = models.TextField(default="", blank=True)
    medium = models.TextField(default="", blank=True)
    source_project = models.TextField(default="", blank=True, help_text="the project that built it")
    package = models.TextField(default="", blank=True)
    binaryid = models.TextField(default="", blank=True)
    buildtime = models.DateTimeField(null=True, blank=True)
    disturl = models.TextField(default="", blank=True)
    supportstatus = models.TextField(default="", blank=True)
    cpeid = models.TextField(default="", blank=True)
    operation = models.TextField(choices=Operation.choices)
    released_at = models.DateTimeField()
    modified_at = models.DateTimeField(
        null=True, blank=True, help_text="when other content replaced it"
    )
    obsolete_at = models.DateTimeField(null=True, blank=True, help_text="when it was removed")

    objects = BinaryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "binaries"
        constraints = [
            models.UniqueConstraint(
                fields=IDENTITY,
                condition=Q(modified_at=None, obsolete_at=None),
                name="tailrace_binary_current_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name}-{self.version}-{self.release}.{self.arch}"

from django.db import models
from django.db.models import Exists, OuterRef, Q


class Project(models.Model):
    """A project of a backend: whether it exists, and its metadata.

    The project exists unless the latest of its create, delete and undelete events deleted it. Ids
    of events rise in the order of the backend's log, so the event with the greatest id is the
    latest, even if events are handled in another order.
    """

    backend = models.TextField(blank=True, help_text="empty: from a source without a name")
    name = models.TextField()
    title = models.TextField(default="", blank=True)
    exists = models.BooleanField(default=True)
    hidden = models.BooleanField(
        default=False, db_default=False, help_text="only those who hold a role in it may read it"
    )
    last_event = models.BigIntegerField(
        default=0,
        db_column="told_by",
        help_text="id of the latest event that created or deleted it",
    )
    refreshed_at = models.DateTimeField(
        null=True, blank=True, help_text="when the read of its metadata began"
    )
    imported_at = models.DateTimeField(
        null=True, blank=True, help_text="when import_backend had read all of its packages"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["backend", "name"], name="tailrace_project_once_per_backend"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Package(models.Model):
    """A package of a backend, and the state of its sources at the last refresh."""

    backend = models.TextField()
    project = models.TextField()
    name = models.TextField()
    title = models.TextField(default="", blank=True)
    srcmd5 = models.TextField(default="", blank=True, help_text="checksum of the sources")
    verifymd5 = models.TextField(
        default="", blank=True, help_text="checksum of the sources with links expanded"
    )
    rev = models.TextField(default="", blank=True)
    vrev = models.TextField(default="", blank=True)
    error = models.TextField(default="", blank=True, help_text="what is wrong with the sources")
    devel_project = models.TextField(default="", blank=True)
    devel_package = models.TextField(default="", blank=True)
    scmsync = models.TextField(
        null=True, blank=True, help_text="URL of the repository of its sources; null: not read yet"
    )
    gone_at = models.DateTimeField(
        null=True, blank=True, help_text="when it was found to be deleted"
    )
    refreshed_at = models.DateTimeField(
        null=True, blank=True, help_text="when the read of its metadata began"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["backend", "project", "name"], name="tailrace_package_once_per_project"
            )
        ]

    def __str__(self) -> str:
        return f"{self.project}/{self.name}"


class PackageLink(models.Model):
    """A package that links to another package: its sources are based on the other's sources."""

    package = models.ForeignKey(Package, models.CASCADE, related_name="links")
    project = models.TextField(help_text="project of the package that is linked to")
    name = models.TextField(help_text="name of the package that is linked to")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["package", "project", "name"], name="tailrace_link_once"
            )
        ]
        indexes = [models.Index(fields=["project", "name"], name="tailrace_link_target")]

    def __str__(self) -> str:
        return f"{self.package} → {self.project}/{self.name}"


class RoleHolder(models.Model):
    """A user or group that holds a role in a project or package, according to its metadata."""

    backend = models.TextField()
    project = models.TextField()
    package = models.TextField(default="", blank=True, help_text="empty: the project's own")
    role = models.TextField()
    user = models.TextField(default="", blank=True, help_text="login")
    group = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["backend", "project", "package", "role", "user", "group"],
                name="tailrace_role_held_once",
            ),
            models.CheckConstraint(
                condition=Q(user="") ^ Q(group=""), name="tailrace_role_held_by_user_or_group"
            ),
        ]

    def __str__(self) -> str:
        target = f"{self.project}/{self.package}" if self.package else self.project
        return f"{self.user or self.group}: {self.role} of {target}"


class UnreadChange(models.Model):
    """A reported change of the metadata of a project or package that was not read yet.

    The row is inserted in the transaction of the event that reports the change, and deleted by a
    read of the metadata that began later. Rows are never updated, so that no transaction waits for
    a row lock.
    """

    backend = models.TextField()
    project = models.TextField()
    package = models.TextField(default="", blank=True, help_text="empty: the project's own")
    event_id = models.BigIntegerField(help_text="id of the event that reported it")
    recorded_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(
                fields=["backend", "project", "package"], name="tailrace_unread_change_of"
            ),
            models.Index(fields=["recorded_at"], name="tailrace_unread_change_since"),
        ]

    def __str__(self) -> str:
        # Without the name of the project, which may be hidden: see Watch.
        return f"change {self.pk}, reported by event {self.event_id}"


def has_changed() -> Exists:
    """Return the condition for a project whose metadata has changed since it was read."""
    changes = UnreadChange.objects.filter(
        backend=OuterRef("backend"), project=OuterRef("name"), package=""
    )
    return Exists(changes)

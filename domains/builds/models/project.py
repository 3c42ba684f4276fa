from django.db import models
from django.db.models import Q


class Project(models.Model):
    """A project of a backend: whether it exists, and what its metadata says.

    Whether it exists is what the last of its create, delete and undelete events said. Events of
    one backend have rising ids in the order of its log, so the greater id wins, whichever of them
    is handled first.
    """

    backend = models.TextField(blank=True, help_text="empty: told of by a source without a name")
    name = models.TextField()
    title = models.TextField(default="", blank=True)
    exists = models.BooleanField(default=True)
    hidden = models.BooleanField(
        default=False, db_default=False, help_text="read by nobody but those who hold a role in it"
    )
    told_by = models.BigIntegerField(default=0, help_text="id of the event that said so")
    refreshed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["backend", "name"], name="project_once_per_backend")
        ]

    def __str__(self) -> str:
        return self.name


class Package(models.Model):
    """A package of a backend: the state of its sources, as last asked for."""

    backend = models.TextField()
    project = models.TextField()
    name = models.TextField()
    title = models.TextField(default="", blank=True)
    srcmd5 = models.TextField(default="", blank=True, help_text="checksum of the sources")
    verifymd5 = models.TextField(default="", blank=True, help_text="… with links expanded")
    rev = models.TextField(default="", blank=True)
    vrev = models.TextField(default="", blank=True)
    error = models.TextField(default="", blank=True, help_text="why its sources are broken")
    devel_project = models.TextField(default="", blank=True)
    devel_package = models.TextField(default="", blank=True)
    gone_at = models.DateTimeField(null=True, blank=True, help_text="when it was found missing")
    refreshed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["backend", "project", "name"], name="package_once_per_project"
            )
        ]

    def __str__(self) -> str:
        return f"{self.project}/{self.name}"


class PackageLink(models.Model):
    """A package whose sources are made of those of another one."""

    package = models.ForeignKey(Package, models.CASCADE, related_name="links")
    project = models.TextField(help_text="project of the package that is linked to")
    name = models.TextField(help_text="name of the package that is linked to")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["package", "project", "name"], name="link_once")
        ]
        indexes = [models.Index(fields=["project", "name"], name="link_target")]

    def __str__(self) -> str:
        return f"{self.package} → {self.project}/{self.name}"


class RoleHolder(models.Model):
    """A user or a group that holds a role in a project or a package, as its metadata says."""

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
                name="role_held_once",
            ),
            models.CheckConstraint(
                condition=Q(user="") ^ Q(group=""), name="role_held_by_user_or_group"
            ),
        ]

    def __str__(self) -> str:
        where = f"{self.project}/{self.package}" if self.package else self.project
        return f"{self.user or self.group}: {self.role} of {where}"

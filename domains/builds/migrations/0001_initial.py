from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """What backends have built, as far as it is known here, and who watches it."""

    initial = True
    dependencies = [
        ("tailrace_events", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Project",
            fields=[
                ("id", ID),
                (
                    "backend",
                    models.TextField(blank=True, help_text="empty: from a source without a name"),
                ),
                ("name", models.TextField()),
                ("title", models.TextField(blank=True, default="")),
                ("exists", models.BooleanField(default=True)),
                (
                    "hidden",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="only those who hold a role in it may read it",
                    ),
                ),
                (
                    "last_event",
                    models.BigIntegerField(
                        db_column="told_by",
                        default=0,
                        help_text="id of the latest event that created or deleted it",
                    ),
                ),
                (
                    "refreshed_at",
                    models.DateTimeField(
                        blank=True, help_text="when the read of its metadata began", null=True
                    ),
                ),
                (
                    "imported_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="when import_backend had read all of its packages",
                        null=True,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["backend", "name"], name="tailrace_project_once_per_backend"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Package",
            fields=[
                ("id", ID),
                ("backend", models.TextField()),
                ("project", models.TextField()),
                ("name", models.TextField()),
                ("title", models.TextField(blank=True, default="")),
                (
                    "srcmd5",
                    models.TextField(blank=True, default="", help_text="checksum of the sources"),
                ),
                (
                    "verifymd5",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="checksum of the sources with links expanded",
                    ),
                ),
                ("rev", models.TextField(blank=True, default="")),
                ("vrev", models.TextField(blank=True, default="")),
                (
                    "error",
                    models.TextField(
                        blank=True, default="", help_text="what is wrong with the sources"
                    ),
                ),
                ("devel_project", models.TextField(blank=True, default="")),
                ("devel_package", models.TextField(blank=True, default="")),
                (
                    "scmsync",
                    models.TextField(
                        blank=True,
                        help_text="URL of the repository of its sources; null: not read yet",
                        null=True,
                    ),
                ),
                (
                    "gone_at",
                    models.DateTimeField(
                        blank=True, help_text="when it was found to be deleted", null=True
                    ),
                ),
                (
                    "refreshed_at",
                    models.DateTimeField(
                        blank=True, help_text="when the read of its metadata began", null=True
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["backend", "project", "name"],
                        name="tailrace_package_once_per_project",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PackageLink",
            fields=[
                ("id", ID),
                (
                    "package",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="links", to="tailrace_builds.package"
                    ),
                ),
                ("project", models.TextField(help_text="project of the package that is linked to")),
                ("name", models.TextField(help_text="name of the package that is linked to")),
            ],
            options={
                "constraints": [
                    # It is the index by package, too.
                    models.UniqueConstraint(
                        fields=["package", "project", "name"], name="tailrace_link_once"
                    ),
                ],
                "indexes": [
                    # The packages that link to one.
                    models.Index(fields=["project", "name"], name="tailrace_link_target"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RoleHolder",
            fields=[
                ("id", ID),
                ("backend", models.TextField()),
                ("project", models.TextField()),
                (
                    "package",
                    models.TextField(blank=True, default="", help_text="empty: the project's own"),
                ),
                ("role", models.TextField()),
                ("user", models.TextField(blank=True, default="", help_text="login")),
                ("group", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    # It serves the question who holds roles in a package, too.
                    models.UniqueConstraint(
                        fields=["backend", "project", "package", "role", "user", "group"],
                        name="tailrace_role_held_once",
                    ),
                    models.CheckConstraint(
                        name="tailrace_role_held_by_user_or_group",
                        condition=Q(user="") ^ Q(group=""),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UnreadChange",
            fields=[
                ("id", ID),
                ("backend", models.TextField()),
                ("project", models.TextField()),
                (
                    "package",
                    models.TextField(blank=True, default="", help_text="empty: the project's own"),
                ),
                ("event_id", models.BigIntegerField(help_text="id of the event that reported it")),
                ("recorded_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    # Whether the metadata of a project or package are out of date.
                    models.Index(
                        fields=["backend", "project", "package"], name="tailrace_unread_change_of"
                    ),
                    # The changes that have waited the longest.
                    models.Index(fields=["recorded_at"], name="tailrace_unread_change_since"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Binary",
            fields=[
                ("id", ID),
                ("backend", models.TextField()),
                ("project", models.TextField(help_text="the project that released it")),
                ("repository", models.TextField()),
                ("name", models.TextField()),
                ("epoch", models.TextField(blank=True, default="")),
                ("version", models.TextField(blank=True, default="")),
                ("release", models.TextField(blank=True, default="")),
                ("arch", models.TextField(blank=True, default="")),
                ("medium", models.TextField(blank=True, default="")),
                (
                    "source_project",
                    models.TextField(blank=True, default="", help_text="the project that built it"),
                ),
                ("package", models.TextField(blank=True, default="")),
                ("binaryid", models.TextField(blank=True, default="")),
                ("buildtime", models.DateTimeField(blank=True, null=True)),
                ("disturl", models.TextField(blank=True, default="")),
                ("supportstatus", models.TextField(blank=True, default="")),
                ("cpeid", models.TextField(blank=True, default="")),
                (
                    "operation",
                    models.TextField(choices=[("added", "Added"), ("modified", "Modified")]),
                ),
                ("released_at", models.DateTimeField()),
                (
                    "modified_at",
                    models.DateTimeField(
                        blank=True, help_text="when other content replaced it", null=True
                    ),
                ),
                (
                    "obsolete_at",
                    models.DateTimeField(blank=True, help_text="when it was removed", null=True),
                ),
            ],
            options={
                "verbose_name_plural": "binaries",
                "constraints": [
                    # A repository contains a binary once at a time.
                    models.UniqueConstraint(
                        fields=[
                            "backend",
                            "project",
                            "repository",
                            "name",
                            "epoch",
                            "version",
                            "release",
                            "arch",
                            "medium",
                        ],
                        name="tailrace_binary_current_once",
                        condition=Q(modified_at=None, obsolete_at=None),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Poller",
            fields=[
                ("id", ID),
                (
                    "name",
                    models.TextField(
                        help_text="the backend's name in OBS_BACKEND_URL", unique=True
                    ),
                ),
                (
                    "epoch",
                    models.PositiveIntegerField(
                        default=1, help_text="rises each time the log is reset"
                    ),
                ),
                (
                    "next_number",
                    models.BigIntegerField(
                        blank=True,
                        help_text="the next number to read; empty: never read",
                        null=True,
                    ),
                ),
                (
                    "end_seen",
                    models.BigIntegerField(
                        blank=True, help_text="the last known end of the log", null=True
                    ),
                ),
                (
                    "waiting",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="how many entries there were to read at the last read",
                    ),
                ),
                (
                    "past_until",
                    models.BigIntegerField(
                        blank=True,
                        help_text="entries below this number are of the past: recorded without notifying anybody",
                        null=True,
                    ),
                ),
                ("events_read", models.BigIntegerField(default=0)),
                (
                    "last_event_at",
                    models.DateTimeField(
                        blank=True, help_text="time of the last event read", null=True
                    ),
                ),
                (
                    "polled_at",
                    models.DateTimeField(
                        blank=True, help_text="time of the last successful read", null=True
                    ),
                ),
                ("error", models.TextField(blank=True, default="")),
                ("errors_in_row", models.PositiveIntegerField(default=0)),
                ("backoff_until", models.DateTimeField(blank=True, null=True)),
                (
                    "lease_holder",
                    models.TextField(
                        blank=True, default="", help_text="the job and claim that read the log now"
                    ),
                ),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    # Entries are numbered from 1.
                    models.CheckConstraint(
                        name="tailrace_poller_next_from_1",
                        condition=Q(next_number=None) | Q(next_number__gte=1),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LogPart",
            fields=[
                ("id", ID),
                (
                    "poller",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="parts", to="tailrace_builds.poller"
                    ),
                ),
                ("first", models.BigIntegerField(help_text="number of the first of the entries")),
                ("digests", models.BinaryField()),
            ],
            options={
                "constraints": [
                    # It serves reads in the order of the log, too.
                    models.UniqueConstraint(
                        fields=["poller", "first"], name="tailrace_log_part_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProjectLogEntry",
            fields=[
                ("id", ID),
                (
                    "event",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=models.DO_NOTHING,
                        related_name="project_log_entry",
                        to="tailrace_events.event",
                    ),
                ),
                ("backend", models.TextField(blank=True, default="")),
                ("project", models.TextField()),
                ("package", models.TextField(blank=True, default="")),
                ("user", models.TextField(blank=True, default="")),
                (
                    "request",
                    models.TextField(blank=True, default="", help_text="the request's number"),
                ),
                ("type", models.TextField(help_text="the event's type")),
                ("occurred_at", models.DateTimeField()),
                ("details", models.JSONField(blank=True, default=dict)),
            ],
            options={
                "verbose_name_plural": "project log entries",
                "indexes": [
                    # The log of a project, of one type.
                    models.Index(
                        fields=["project", "type", "-event"], name="tailrace_project_log_by_type"
                    ),
                    # The log of a project, the latest first.
                    models.Index(fields=["project", "-event"], name="tailrace_project_log_latest"),
                    # Read by pruning: build results and others, each from the oldest on.
                    models.Index(
                        fields=["occurred_at"],
                        name="tailrace_project_log_builds",
                        condition=Q(type__in=("builds.build_success", "builds.build_fail")),
                    ),
                    models.Index(
                        fields=["occurred_at"],
                        name="tailrace_project_log_others",
                        condition=~Q(type__in=("builds.build_success", "builds.build_fail")),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BuildLogTail",
            fields=[
                ("id", ID),
                (
                    "event",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=models.DO_NOTHING,
                        related_name="build_log_tail",
                        to="tailrace_events.event",
                    ),
                ),
                ("text", models.TextField(blank=True, default="")),
                (
                    "problem",
                    models.TextField(blank=True, default="", help_text="why there is no text"),
                ),
                ("requested_at", models.DateTimeField(db_index=True)),
                ("fetched_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Watch",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="watches",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("project", models.TextField(blank=True, default="")),
                ("package", models.TextField(blank=True, default="")),
                (
                    "request",
                    models.PositiveBigIntegerField(blank=True, help_text="its number", null=True),
                ),
            ],
            options={
                "verbose_name_plural": "watches",
                "permissions": [
                    ("moderate", "Can moderate: is notified about reports and appeals")
                ],
                "constraints": [
                    # It is the index by user, too.
                    models.UniqueConstraint(
                        fields=["user", "project", "package", "request"],
                        name="tailrace_watched_once",
                        nulls_distinct=False,
                    ),
                    # A project, with or without a package; or a request.
                    models.CheckConstraint(
                        name="tailrace_watch_has_one_target",
                        condition=~Q(project="") & Q(request=None)
                        | Q(package="", project="", request__isnull=False),
                    ),
                ],
                "indexes": [
                    # Who watches a package.
                    models.Index(fields=["project", "package"], name="tailrace_watch_package"),
                    # Who watches a request.
                    models.Index(
                        fields=["request"],
                        name="tailrace_watch_request",
                        condition=Q(request__isnull=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TokenHolder",
            fields=[
                ("id", ID),
                ("token", models.PositiveBigIntegerField(help_text="the token's number")),
                (
                    "role",
                    models.TextField(choices=[("executor", "Executor"), ("member", "Member")]),
                ),
                ("user", models.TextField(blank=True, default="", help_text="login")),
                ("group", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    # It is the index by token, too.
                    models.UniqueConstraint(
                        fields=["token", "role", "user", "group"], name="tailrace_token_held_once"
                    ),
                    models.CheckConstraint(
                        name="tailrace_token_held_by_user_or_group",
                        condition=Q(user="") ^ Q(group=""),
                    ),
                ],
            },
        ),
    ]

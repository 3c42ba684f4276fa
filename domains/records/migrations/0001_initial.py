from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.core import validators
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.db.real_field import RealField

MAY_CREATE_VECTOR = """
SELECT FROM pg_available_extension_versions
WHERE name = 'vector' AND NOT superuser
   OR name = 'vector' AND (trusted OR current_setting('is_superuser') = 'on')
"""


def create_extension(apps: Any, schema_editor: Any) -> None:
    """Where the server has pgvector and we may: else an administrator may at any time."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(MAY_CREATE_VECTOR)
        if cursor.fetchone() is not None:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")


ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """Records from their deposition to their index."""

    initial = True
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Source",
            fields=[
                ("id", ID),
                (
                    "name",
                    models.TextField(
                        help_text="begins the identifiers of its records",
                        unique=True,
                        validators=[
                            validators.RegexValidator(
                                "^[a-z0-9][a-z0-9-]{0,59}\\Z",
                                "A name has at most 60 characters: lower-case letters, digits and hyphens.",
                            )
                        ],
                    ),
                ),
                ("kind", models.TextField(help_text="a format of `sources`, such as oai_pmh")),
                ("url", models.TextField()),
                (
                    "settings",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="what the format needs, such as a metadata prefix",
                    ),
                ),
                (
                    "cursor",
                    models.JSONField(
                        blank=True,
                        help_text="where the next read begins; empty: at the beginning",
                        null=True,
                    ),
                ),
                ("is_active", models.BooleanField(default=True)),
                (
                    "last_read_at",
                    models.DateTimeField(
                        blank=True, help_text="of a page without error", null=True
                    ),
                ),
                (
                    "cron",
                    models.TextField(
                        db_default="0 3 * * *",
                        default="0 3 * * *",
                        help_text="when it is read, in UTC",
                    ),
                ),
                (
                    "completed_at",
                    models.DateTimeField(
                        blank=True, help_text="when all there was had been read last", null=True
                    ),
                ),
                (
                    "list_goes_on",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="a list of its records has been read in part",
                    ),
                ),
                (
                    "records_read",
                    models.BigIntegerField(
                        db_default=0, default=0, help_text="records of this list that were read"
                    ),
                ),
                (
                    "records_total",
                    models.BigIntegerField(
                        blank=True, help_text="records of this list, as the source says", null=True
                    ),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="why its last page could not be read; empty: it could",
                    ),
                ),
                ("errors_in_row", models.IntegerField(db_default=0, default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Deposition",
            fields=[
                ("id", ID),
                (
                    "identifier",
                    models.TextField(help_text="of the record; its versions have it in common"),
                ),
                (
                    "source",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="where it was harvested; empty: submitted by a user",
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="depositions",
                        to="tailrace_records.source",
                    ),
                ),
                (
                    "source_identifier",
                    models.TextField(
                        blank=True, default="", help_text="the identifier that the source uses"
                    ),
                ),
                (
                    "submitted_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="depositions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("submitted_at", models.DateTimeField(db_default=Now())),
                (
                    "datestamp",
                    models.DateTimeField(help_text="of this version; the latest is the record's"),
                ),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("digest", models.TextField(help_text="of the metadata and the files")),
                (
                    "is_deleted",
                    models.BooleanField(default=False, help_text="withdraws the record"),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("submitted", "Submitted"),
                            ("valid", "Valid"),
                            ("invalid", "Invalid"),
                            ("approved", "Approved"),
                            ("published", "Published"),
                            ("rejected", "Rejected"),
                            ("superseded", "Superseded"),
                        ],
                        default="submitted",
                    ),
                ),
                (
                    "problems",
                    models.JSONField(
                        blank=True, default=list, help_text="why it is invalid: fields and messages"
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, default="", help_text="why it was rejected or withdrawn"
                    ),
                ),
                (
                    "request_key",
                    models.TextField(
                        blank=True, default="", help_text="the Idempotency-Key of its request"
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("curate_deposition", "Can approve, reject and withdraw depositions")
                ],
                "constraints": [
                    # A version that a source lists again is the same deposition.
                    models.UniqueConstraint(
                        fields=["identifier", "datestamp", "digest"],
                        name="tailrace_deposition_once",
                    ),
                    # A key stands for one request of its user.
                    models.UniqueConstraint(
                        fields=["submitted_by", "request_key"],
                        name="tailrace_deposition_request_once",
                        condition=~Q(request_key=""),
                    ),
                ],
                "indexes": [
                    # The depositions of a user, the latest first.
                    models.Index(
                        fields=["submitted_by", "-id"], name="tailrace_deposition_of_user"
                    ),
                    # The depositions of a source, the latest first.
                    models.Index(fields=["source", "-id"], name="tailrace_deposition_of_source"),
                    # Those that wait for a curator, and the list's filter.
                    models.Index(fields=["state", "-id"], name="tailrace_deposition_by_state"),
                    # Those that should have been worked on.
                    models.Index(
                        fields=["submitted_at"],
                        name="tailrace_deposition_unfinished",
                        condition=Q(state__in=("submitted", "valid", "approved")),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DepositionFile",
            fields=[
                ("id", ID),
                (
                    "deposition",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="files",
                        to="tailrace_records.deposition",
                    ),
                ),
                ("name", models.TextField(help_text="as the depositor named it")),
                ("media_type", models.TextField()),
                ("size", models.BigIntegerField(help_text="bytes")),
                ("digest", models.TextField(help_text="SHA-256 in hexadecimal digits")),
                ("key", models.TextField(help_text="where the file is stored", unique=True)),
            ],
            options={
                "constraints": [
                    # It is the index by deposition, too.
                    models.UniqueConstraint(
                        fields=["deposition", "name"], name="tailrace_deposition_file_name_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Record",
            fields=[
                ("id", ID),
                ("identifier", models.TextField(unique=True)),
                (
                    "version",
                    models.PositiveIntegerField(default=1, help_text="rises with each publication"),
                ),
                (
                    "deposition",
                    models.ForeignKey(
                        blank=True,
                        help_text="the version that it shows",
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="records",
                        to="tailrace_records.deposition",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="who deposited it; empty: harvested",
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="records",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "access",
                    models.TextField(
                        choices=[("open", "Open"), ("closed", "Closed")],
                        default="open",
                        help_text="closed: only the owner reads it",
                    ),
                ),
                ("title", models.TextField(blank=True, default="")),
                ("description", models.TextField(blank=True, default="")),
                ("creators", ArrayField(base_field=models.TextField(), blank=True, default=list)),
                ("keywords", ArrayField(base_field=models.TextField(), blank=True, default=list)),
                (
                    "language",
                    models.TextField(blank=True, default="", help_text="ISO 639-1; empty: unknown"),
                ),
                ("datestamp", models.DateTimeField(help_text="of its deposition")),
                (
                    "is_deleted",
                    models.BooleanField(default=False, help_text="withdrawn, and in no index"),
                ),
                (
                    "published_at",
                    models.DateTimeField(db_default=Now(), help_text="of its latest version"),
                ),
            ],
            options={
                "indexes": [
                    # The list of records, the latest first.
                    models.Index(fields=["-published_at", "-id"], name="tailrace_record_latest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="KeywordEntry",
            fields=[
                (
                    "record",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="keyword_entry",
                        serialize=False,
                        to="tailrace_records.record",
                    ),
                ),
                (
                    "version",
                    models.PositiveIntegerField(help_text="of the record when it was indexed"),
                ),
                (
                    "language",
                    models.TextField(
                        blank=True, default="", help_text="of the record at that time"
                    ),
                ),
                ("document", SearchVectorField()),
            ],
            options={
                "verbose_name_plural": "keyword entries",
                "indexes": [
                    # The search for words.
                    GinIndex(fields=["document"], name="tailrace_keyword_document"),
                ],
            },
        ),
        migrations.CreateModel(
            name="VectorEntry",
            fields=[
                ("id", ID),
                (
                    "record",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="vector_entries",
                        to="tailrace_records.record",
                    ),
                ),
                (
                    "version",
                    models.PositiveIntegerField(help_text="of the record when it was indexed"),
                ),
                ("model", models.TextField(help_text="name of the embedding model")),
                ("model_version", models.TextField()),
                ("dimensions", models.PositiveIntegerField()),
                ("embedding", ArrayField(base_field=RealField())),
            ],
            options={
                "verbose_name_plural": "vector entries",
                "constraints": [
                    # It is the index by record, too.
                    models.UniqueConstraint(
                        fields=["record", "model", "model_version"],
                        name="tailrace_vector_entry_once_per_model",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="EmbeddingIndex",
            fields=[
                ("id", ID),
                ("location", models.TextField(help_text="folder, or hashing:DIMENSIONS")),
                ("model", models.TextField(help_text="name of the embedding model")),
                ("model_version", models.TextField()),
                ("dimensions", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField(db_default=Now())),
                (
                    "completed_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="when it had all records; from then on search uses it",
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "embedding indexes",
                "constraints": [
                    models.UniqueConstraint(
                        fields=["model", "model_version"],
                        name="tailrace_embedding_index_once_per_model",
                    ),
                ],
            },
        ),
        migrations.RunPython(create_extension, migrations.RunPython.noop),
    ]

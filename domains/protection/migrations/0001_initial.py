from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """What is watched for a user, and what was found."""

    initial = True
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="StoredFile",
            fields=[
                ("id", ID),
                ("key", models.TextField(help_text="where the file is stored", unique=True)),
                ("size", models.BigIntegerField(help_text="bytes")),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "indexes": [
                    # Old rows whose file nothing owns.
                    models.Index(fields=["created_at"], name="tailrace_file_created"),
                ],
            },
        ),
        migrations.CreateModel(
            name="WatchlistItem",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="watchlist_items",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("email", "email address"),
                            ("phone", "phone number"),
                            ("domain", "domain"),
                            ("username", "user name"),
                            ("ssn", "Social Security number"),
                        ]
                    ),
                ),
                ("value", models.TextField(help_text="encrypted")),
                (
                    "value_key",
                    models.TextField(help_text="a keyed hash of the value, to find it again"),
                ),
                (
                    "masked",
                    models.TextField(help_text="the value as it is shown: a•••@example.org"),
                ),
                (
                    "active",
                    models.BooleanField(
                        db_default=True, default=True, help_text="scans look it up"
                    ),
                ),
                (
                    "key_ids",
                    models.TextField(
                        help_text="which keys encrypted and hashed it; those of older keys are written again"
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    # A user watches a value once; the key is its hash.
                    models.UniqueConstraint(
                        fields=["user", "kind", "value_key"], name="tailrace_protection_item_once"
                    ),
                ],
                "indexes": [
                    # The watchlist of a user.
                    models.Index(fields=["user", "id"], name="tailrace_protection_item_user"),
                    # Values that are to be encrypted and hashed by the newest keys.
                    models.Index(fields=["key_ids", "id"], name="tailrace_protection_item_keys"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ItemScan",
            fields=[
                ("id", ID),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="scans",
                        to="tailrace_protection.watchlistitem",
                    ),
                ),
                ("source", models.TextField()),
                ("scanned_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    # It is the index by item, too.
                    models.UniqueConstraint(
                        fields=["item", "source"], name="tailrace_protection_item_scan_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BreachFeed",
            fields=[
                ("name", models.TextField(primary_key=True, serialize=False)),
                ("latest", models.TextField(help_text="the breach that was the newest")),
                ("listed_at", models.DateTimeField(help_text="when the whole list was read")),
            ],
        ),
        migrations.CreateModel(
            name="Breach",
            fields=[
                ("id", ID),
                ("source", models.TextField(help_text="who knows it, such as hibp_breaches")),
                ("name", models.TextField(help_text="how the source calls it")),
                ("title", models.TextField()),
                (
                    "domain",
                    models.TextField(
                        blank=True, default="", help_text="the site that lost the data"
                    ),
                ),
                ("breached_on", models.DateField(blank=True, null=True)),
                (
                    "added_at",
                    models.DateTimeField(
                        blank=True, help_text="when the source added it", null=True
                    ),
                ),
                ("modified_at", models.DateTimeField(blank=True, null=True)),
                (
                    "data_classes",
                    models.JSONField(
                        default=list, help_text="what was lost, in the source's words"
                    ),
                ),
                (
                    "description",
                    models.TextField(blank=True, default="", help_text="plain text, without HTML"),
                ),
                (
                    "listed",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="it stood in the source's list of breaches",
                    ),
                ),
                (
                    "accounts",
                    models.BigIntegerField(blank=True, help_text="how many it concerns", null=True),
                ),
            ],
            options={
                "verbose_name_plural": "breaches",
                "constraints": [
                    models.UniqueConstraint(
                        fields=["source", "name"], name="tailrace_protection_breach_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Exposure",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="exposures",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="exposures",
                        to="tailrace_protection.watchlistitem",
                    ),
                ),
                (
                    "breach",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="exposures",
                        to="tailrace_protection.breach",
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[("new", "New"), ("known", "Known"), ("resolved", "Resolved")],
                        default="new",
                    ),
                ),
                (
                    "severity",
                    models.SmallIntegerField(
                        choices=[(1, "info"), (2, "warning"), (3, "critical")]
                    ),
                ),
                (
                    "first_at",
                    models.DateTimeField(db_default=Now(), help_text="when a scan came upon it"),
                ),
                (
                    "moved_at",
                    models.DateTimeField(blank=True, help_text="when its state changed", null=True),
                ),
            ],
            options={
                "constraints": [
                    # It decides between scans, and is the index by item, too.
                    models.UniqueConstraint(
                        fields=["item", "breach"], name="tailrace_protection_exposure_once"
                    ),
                ],
                "indexes": [
                    # The exposures of a user, the latest first.
                    models.Index(fields=["user", "-id"], name="tailrace_exposure_user"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="protection_alerts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("kind", models.TextField(help_text="what was found: exposure, lien_filing …")),
                ("source", models.TextField(help_text="where: a provider, or property:<id>")),
                (
                    "severity",
                    models.SmallIntegerField(
                        choices=[(1, "info"), (2, "warning"), (3, "critical")]
                    ),
                ),
                ("details", models.JSONField(default=dict)),
                ("raised_at", models.DateTimeField(db_default=Now())),
                (
                    "announced_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="when it was handed to the channels of its user",
                        null=True,
                    ),
                ),
            ],
            options={
                "indexes": [
                    # The alerts of a user, the latest first.
                    models.Index(fields=["user", "-id"], name="tailrace_protection_alert_user"),
                    # Alerts of which no notification tells yet.
                    models.Index(
                        fields=["user"],
                        name="tailrace_alert_unannounced",
                        condition=Q(announced_at__isnull=True),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertPause",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("kind", models.TextField()),
                ("source", models.TextField()),
                (
                    "severity",
                    models.SmallIntegerField(
                        choices=[(1, "info"), (2, "warning"), (3, "critical")]
                    ),
                ),
                ("until", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    # It decides between scans that raise the same alert.
                    models.UniqueConstraint(
                        fields=["user", "kind", "source"],
                        name="tailrace_protection_alert_pause_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DeedFeed",
            fields=[
                (
                    "name",
                    models.TextField(
                        help_text="source and dataset", primary_key=True, serialize=False
                    ),
                ),
                (
                    "position",
                    models.JSONField(default=dict, help_text="as the source describes it"),
                ),
                ("read_at", models.DateTimeField(help_text="when it was last read to its end")),
            ],
        ),
        migrations.CreateModel(
            name="WatchedProperty",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="watched_properties",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("source", models.TextField(help_text="whose public records they are")),
                (
                    "borough",
                    models.PositiveSmallIntegerField(
                        choices=[
                            (1, "Manhattan"),
                            (2, "Bronx"),
                            (3, "Brooklyn"),
                            (4, "Queens"),
                            (5, "Staten Island"),
                        ]
                    ),
                ),
                ("block", models.PositiveIntegerField(blank=True, null=True)),
                ("lot", models.PositiveIntegerField(blank=True, null=True)),
                ("street_number", models.TextField(blank=True, default="")),
                ("street_name", models.TextField(blank=True, default="")),
                ("unit", models.TextField(blank=True, default="")),
                ("key", models.TextField(help_text="the lot or address, normalised")),
                (
                    "place_key",
                    models.TextField(help_text="the same without the unit: change feeds name that"),
                ),
                ("scanned_at", models.DateTimeField(blank=True, null=True)),
                (
                    "scanned_by",
                    models.BigIntegerField(
                        blank=True,
                        help_text="the job that began the run that scanned it last",
                        null=True,
                    ),
                ),
                (
                    "concerned_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="since when a change feed names it and no scan has read it",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "verbose_name_plural": "watched properties",
                "constraints": [
                    # A user watches a property of a source once.
                    models.UniqueConstraint(
                        fields=["user", "source", "key"], name="tailrace_protection_property_once"
                    ),
                    # A lot or an address, and not both.
                    models.CheckConstraint(
                        name="tailrace_protection_property_place",
                        condition=Q(block__isnull=False, lot__isnull=False, street_name="")
                        | Q(block__isnull=True, lot__isnull=True) & ~Q(street_name=""),
                    ),
                ],
                "indexes": [
                    # The properties of a user.
                    models.Index(fields=["user", "id"], name="tailrace_property_user"),
                    # The properties that a changed deed is about.
                    models.Index(fields=["place_key"], name="tailrace_property_place_key"),
                    # Those that a feed has named, and that are to be read.
                    models.Index(
                        fields=["user", "id"],
                        name="tailrace_property_concerned",
                        condition=Q(concerned_at__isnull=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PropertySnapshot",
            fields=[
                (
                    "property",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="snapshot",
                        serialize=False,
                        to="tailrace_protection.watchedproperty",
                    ),
                ),
                ("documents", models.JSONField(default=dict)),
                (
                    "hash",
                    models.TextField(help_text="of the documents, with names as they are compared"),
                ),
                (
                    "watermark",
                    models.TextField(default="", help_text="until when the records are complete"),
                ),
                (
                    "complete",
                    models.BooleanField(
                        default=True, help_text="no: it has more documents than are watched"
                    ),
                ),
                ("read_at", models.DateTimeField(help_text="when reading the records began")),
            ],
        ),
        migrations.CreateModel(
            name="PropertyChange",
            fields=[
                ("id", ID),
                (
                    "property",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="changes",
                        to="tailrace_protection.watchedproperty",
                    ),
                ),
                ("document_id", models.TextField()),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("ownership_transfer", "ownership transfer"),
                            ("lien_filing", "lien"),
                            ("deed_change", "deed change"),
                            ("tax_change", "tax document"),
                        ]
                    ),
                ),
                (
                    "severity",
                    models.SmallIntegerField(
                        choices=[(1, "info"), (2, "warning"), (3, "critical")]
                    ),
                ),
                (
                    "details",
                    models.JSONField(default=dict, help_text="type, dates, amount and names"),
                ),
                (
                    "fingerprint",
                    models.TextField(
                        help_text="a hash of the document, to notice a correction of it"
                    ),
                ),
                ("noticed_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    # A document is reported once per kind, however often it is read.
                    models.UniqueConstraint(
                        fields=["property", "document_id", "kind"],
                        name="tailrace_protection_change_once",
                    ),
                ],
                "indexes": [
                    # The history of a property, the latest first.
                    models.Index(fields=["property", "-id"], name="tailrace_change_property"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RemovalRequest",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="removal_requests",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "broker",
                    models.TextField(help_text="key of the broker in PROTECTION_BROKERS_FILE"),
                ),
                (
                    "person",
                    models.TextField(
                        help_text="whose data is to be removed, encrypted; empty once it is withdrawn"
                    ),
                ),
                ("key_id", models.TextField(help_text="the key that it is encrypted with")),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("pending", "Pending"),
                            ("submitted", "Submitted"),
                            ("awaiting_confirmation", "awaiting confirmation"),
                            ("removed", "Removed"),
                            ("rejected", "Rejected"),
                            ("needs_person", "needs a person"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="pending",
                    ),
                ),
                (
                    "step",
                    models.TextField(
                        choices=[
                            ("submit", "Submit"),
                            ("confirm", "Confirm"),
                            ("verify", "Verify"),
                        ],
                        default="submit",
                    ),
                ),
                (
                    "note",
                    models.TextField(blank=True, default="", help_text="why it is in this state"),
                ),
                (
                    "submission",
                    models.PositiveIntegerField(
                        default=1,
                        help_text="how often it was begun: a repeated submission has the same number",
                    ),
                ),
                (
                    "confirm_url",
                    models.TextField(
                        blank=True, default="", help_text="the broker's link to follow, encrypted"
                    ),
                ),
                (
                    "checks",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="verification scans of this submission that saw no removal",
                    ),
                ),
                (
                    "job_id",
                    models.BigIntegerField(
                        blank=True, help_text="the job of the next step", null=True
                    ),
                ),
                (
                    "next_at",
                    models.DateTimeField(blank=True, help_text="when that is due", null=True),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "changed_at",
                    models.DateTimeField(db_default=Now(), help_text="when its state last changed"),
                ),
                ("submitted_at", models.DateTimeField(blank=True, null=True)),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "permissions": [
                    (
                        "decide_removalrequest",
                        "Can do what parked removals need, and read whose data they are about",
                    )
                ],
                "constraints": [
                    # A broker is asked once at a time.
                    models.UniqueConstraint(
                        fields=["user", "broker"],
                        name="tailrace_protection_removal_open_once",
                        condition=~Q(state__in=("rejected", "withdrawn")),
                    ),
                ],
                "indexes": [
                    # The requests of a user, the latest first.
                    models.Index(fields=["user", "-id"], name="tailrace_removal_user"),
                    # The requests whose next step is due.
                    models.Index(
                        fields=["next_at"],
                        name="tailrace_removal_next",
                        condition=Q(next_at__isnull=False),
                    ),
                    # Those that are to be encrypted by the newest key.
                    models.Index(
                        fields=["key_id"], name="tailrace_removal_key", condition=~Q(person="")
                    ),
                    # Those that wait for a person.
                    models.Index(
                        fields=["-id"],
                        name="tailrace_removal_parked",
                        condition=Q(state="needs_person"),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RemovalChange",
            fields=[
                ("id", ID),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="changes",
                        to="tailrace_protection.removalrequest",
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "old_state",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("pending", "Pending"),
                            ("submitted", "Submitted"),
                            ("awaiting_confirmation", "awaiting confirmation"),
                            ("removed", "Removed"),
                            ("rejected", "Rejected"),
                            ("needs_person", "needs a person"),
                            ("withdrawn", "Withdrawn"),
                        ],
                    ),
                ),
                (
                    "new_state",
                    models.TextField(
                        choices=[
                            ("pending", "Pending"),
                            ("submitted", "Submitted"),
                            ("awaiting_confirmation", "awaiting confirmation"),
                            ("removed", "Removed"),
                            ("rejected", "Rejected"),
                            ("needs_person", "needs a person"),
                            ("withdrawn", "Withdrawn"),
                        ]
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        help_text="nobody: a job",
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("note", models.TextField(blank=True, default="")),
            ],
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="protection_reports",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("first_day", models.DateField(help_text="in the time zone of the account")),
                ("last_day", models.DateField(help_text="the period's last day, included")),
                ("time_zone", models.TextField()),
                (
                    "file",
                    models.OneToOneField(
                        on_delete=models.PROTECT,
                        related_name="report",
                        to="tailrace_protection.storedfile",
                    ),
                ),
                (
                    "totals",
                    models.JSONField(
                        default=dict,
                        help_text="the numbers that stand in it, by section: {alerts: {total: 3}}",
                    ),
                ),
                (
                    "is_cut",
                    models.BooleanField(default=False, help_text="it lists less than it counts"),
                ),
                ("generated_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    # A report that is made again is the same.
                    models.UniqueConstraint(
                        fields=["user", "first_day", "last_day"],
                        name="tailrace_protection_report_once",
                    ),
                    models.CheckConstraint(
                        name="tailrace_protection_report_period",
                        condition=Q(first_day__lte=F("last_day")),
                    ),
                ],
                "indexes": [
                    # The reports of a user, the latest first.
                    models.Index(fields=["user", "-id"], name="tailrace_report_user"),
                ],
            },
        ),
        migrations.CreateModel(
            name="VoiceEnrolment",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="voice_enrolments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "file",
                    models.OneToOneField(
                        on_delete=models.PROTECT,
                        related_name="voice_enrolment",
                        to="tailrace_protection.storedfile",
                    ),
                ),
                ("seconds", models.FloatField()),
                (
                    "content_hash",
                    models.TextField(
                        db_default="",
                        default="",
                        editable=False,
                        help_text="SHA-256 of the file: a file that is sent again is the same",
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "indexes": [
                    # The voices of a user.
                    models.Index(fields=["user", "id"], name="tailrace_enrolment_user"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Recording",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="recordings",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "file",
                    models.OneToOneField(
                        on_delete=models.PROTECT,
                        related_name="recording",
                        to="tailrace_protection.storedfile",
                    ),
                ),
                ("name", models.TextField(help_text="of the file, as it was sent")),
                (
                    "content_hash",
                    models.TextField(
                        db_default="",
                        default="",
                        editable=False,
                        help_text="SHA-256 of the file: a file that is sent again is the same",
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("pending", "Pending"),
                            ("matched", "Matched"),
                            ("different", "Different"),
                            ("unknown", "Unknown"),
                            ("broken", "Broken"),
                        ],
                        default="pending",
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, default="", help_text="why it is broken or unknown"
                    ),
                ),
                (
                    "score",
                    models.FloatField(
                        blank=True, help_text="of the most similar voice, to 1", null=True
                    ),
                ),
                (
                    "model_name",
                    models.TextField(blank=True, default="", help_text="what gave the score"),
                ),
                ("model_version", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("compared_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    # The recordings of a user, the latest first.
                    models.Index(fields=["user", "-id"], name="tailrace_recording_user"),
                    # The recordings that are to be compared.
                    models.Index(
                        fields=["user", "id"],
                        name="tailrace_recording_pending",
                        condition=Q(state="pending"),
                    ),
                ],
            },
        ),
    ]

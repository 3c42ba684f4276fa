from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models.functions import Now

ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """What protects accounts and the API."""

    initial = True
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="LoginThrottle",
            fields=[
                ("slot", models.TextField(primary_key=True, serialize=False)),
                (
                    "tries",
                    models.FloatField(
                        help_text="free attempts that are left; below one, the wait grows"
                    ),
                ),
                ("failures", models.IntegerField(help_text="in a row")),
                ("at", models.DateTimeField(help_text="time of the last attempt that counted")),
            ],
            options={
                "permissions": [("view_security_log", "Can read the security log")],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="SecondFactor",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="second_factor",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("key", models.TextField(help_text="encrypted")),
                (
                    "confirmed_at",
                    models.DateTimeField(help_text="empty: it is not set up yet", null=True),
                ),
                (
                    "last_step",
                    models.BigIntegerField(
                        default=0, help_text="of the last code that was accepted"
                    ),
                ),
                (
                    "recovery_codes",
                    ArrayField(base_field=models.TextField(), default=list, help_text="hashes"),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="AnsweredRequest",
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
                ("key", models.TextField()),
                (
                    "digest",
                    models.TextField(
                        help_text="SHA-256 of the request that came with the key first"
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        help_text="empty: it is being worked on", null=True
                    ),
                ),
                ("location", models.TextField(db_default="", default="")),
                (
                    "answer",
                    models.TextField(
                        db_default="",
                        default="",
                        help_text="encrypted; empty: it has a secret, or is too long",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    # A key stands for one request of its user.
                    models.UniqueConstraint(
                        fields=["user", "key"], name="tailrace_answered_request_once"
                    ),
                ],
                "indexes": [
                    # What is pruned.
                    models.Index(fields=["created_at"], name="tailrace_answered_request_age"),
                ],
            },
        ),
    ]

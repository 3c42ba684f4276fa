"""System checks of the settings: `manage.py check`, and with --deploy what production needs."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Info, Warning, register

SUBJECT = re.compile(r"(mailto:[^@\s]+@(localhost|[\w-]+(\.[\w-]+)+)|https://[\w-]+\.[\w.-]+)?")
"""Of VAPID_SUBJECT, as py_vapid takes it."""
LOCAL = ("127.0.0.1", "localhost", "::1", "")


@register("settings")
def environment(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Each wrong variable, with its name; unknown ones, with the nearest known name."""
    from config.settings import env

    wrong: list[CheckMessage] = [Error(str(one), id="tailrace.E001") for one in env.problems]
    return wrong + [Warning(str(one), id="tailrace.W001") for one in env.unknown()]


@register("settings")
def webhook_secrets(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Bus backends by http need a key to sign with, in the form of Standard Webhooks."""
    named = {f"BUS_SECRET_{key}": value for key, value in django_settings.BUS_SECRETS.items()}
    keys = {"BUS_WEBHOOK_SECRET": django_settings.BUS_WEBHOOK_SECRET, **named}
    return [
        Error(f"{name}: does not start with whsec_", id="tailrace.E002")
        for name, value in keys.items()
        if value and not value.startswith("whsec_")
    ]


@register("settings")
def sending(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Push messages and texts need all of their settings, or none; webhooks what they trust."""
    found: list[CheckMessage] = []
    for given, wanted in (
        ("VAPID_PRIVATE_KEY", "VAPID_SUBJECT"),
        ("SMS_URL", "SMS_TOKEN"),
        ("SMS_URL", "SMS_FROM"),
    ):
        if getattr(django_settings, given) and not getattr(django_settings, wanted):
            found.append(Error(f"{wanted}: is not set, and {given} needs it", id="tailrace.E003"))
    if not SUBJECT.fullmatch(django_settings.VAPID_SUBJECT):
        hint = "Set it to mailto:you@example.org or https://example.org."
        found.append(
            Error("VAPID_SUBJECT: is not taken by push services", hint, id="tailrace.E004")
        )
    if django_settings.SMS_URL and "/Accounts/" not in urlsplit(django_settings.SMS_URL).path:
        hint = "Set it to https://…/2010-04-01/Accounts/<SID>/Messages.json."
        found.append(Error("SMS_URL: names no account", hint, id="tailrace.E005"))
    trusted = django_settings.WEBHOOK_CA_FILE
    if trusted and not Path(trusted).is_file():
        found.append(Error(f"WEBHOOK_CA_FILE: {trusted!r} is no file", id="tailrace.E006"))
    return found


@register("settings", deploy=True)
def channels(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """What is encrypted by which key, and the channels that reach nobody."""
    from config.settings import env

    found: list[CheckMessage] = []
    if not env.is_set("ENCRYPTION_KEYS"):
        message = "ENCRYPTION_KEYS: is not set; another SECRET_KEY would make secrets unreadable"
        hint = "Set it to 32 random bytes in urlsafe base64; keep older keys behind the newest."
        found.append(Error(message, hint, id="tailrace.E110"))
    if not django_settings.VAPID_PRIVATE_KEY:
        message = "VAPID_PRIVATE_KEY: is not set, so push messages reach nobody"
        hint = "Make a key by `manage.py make_vapid_keys`."
        found.append(Info(message, hint, id="tailrace.I101"))
    if not django_settings.SMS_URL:
        message = "SMS_URL: is not set, so texts reach nobody"
        found.append(Info(message, id="tailrace.I102"))
    elif not django_settings.SMS_URL.startswith("https:"):
        found.append(Warning("SMS_URL: is not https", id="tailrace.W103"))
    return found


@register("settings", deploy=True)
def engines(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """The embedded engines are for one machine and one person."""
    wanted = django_settings.EMBEDDED
    return [
        Error(f"{name}: is not set, so the embedded {engine} would be used", hint, id=number)
        for missing, name, engine, hint, number in (
            (wanted.postgres, "DATABASE_URL", "PostgreSQL",
             "Set it to postgres://user:password@host/name.", "tailrace.E101"),
            (wanted.valkey, "BROKER_URL", "Valkey",
             "Set it to redis://:password@host:6379/0 or amqps://user:password@host/vhost.",
             "tailrace.E102"),
        )
        if missing
    ]  # fmt: skip


@register("settings", deploy=True)
def web(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Key, host names and the public address."""
    from config.settings import env

    found: list[CheckMessage] = []
    public = urlsplit(django_settings.PUBLIC_URL)
    if not env.is_set("SECRET_KEY"):
        hint = "Set it to 50 random characters, the same for all processes of one installation."
        found.append(Error("SECRET_KEY: is not set", hint, id="tailrace.E103"))
    if public.hostname in LOCAL:
        hint = "Links in mails and feeds would lead nowhere: set it to the public https address."
        found.append(Error("PUBLIC_URL: is not set or local", hint, id="tailrace.E104"))
    elif public.scheme != "https":
        found.append(Warning("PUBLIC_URL: is not https", id="tailrace.W101"))
    if "*" in django_settings.ALLOWED_HOSTS:
        found.append(Error("ALLOWED_HOSTS: * lets any Host header in", id="tailrace.E105"))
    elif public.hostname not in django_settings.ALLOWED_HOSTS:
        message = f"ALLOWED_HOSTS: does not have {public.hostname}, PUBLIC_URL's host"
        found.append(Error(message, id="tailrace.E106"))
    return found


@register("settings", deploy=True)
def outside(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Mail, Flower, logs and the keys of webhooks."""
    from config.settings import env

    found: list[CheckMessage] = []
    if not env.is_set("EMAIL_URL"):
        hint = "Set it to smtp+tls://user:password@host:587."
        found.append(Error("EMAIL_URL: is not set, mails go to files", hint, id="tailrace.E107"))
    if len(django_settings.FLOWER_BASIC_AUTH.partition(":")[2]) < 12:
        message = "FLOWER_BASIC_AUTH: is not set, or its password is shorter than 12 characters"
        found.append(Error(message, "Set it to user:password.", id="tailrace.E108"))
    if django_settings.LOG_FORMAT != "json":
        found.append(Warning("LOG_FORMAT: is not json", id="tailrace.W102"))
    for name, url in django_settings.BUS_BACKENDS.items():
        secret = django_settings.BUS_SECRETS.get(name.upper(), django_settings.BUS_WEBHOOK_SECRET)
        if url.startswith("http") and not secret:
            message = f"BUS_WEBHOOK_SECRET: is not set, and bus backend {name} needs it"
            found.append(Error(message, id="tailrace.E109"))
    return found

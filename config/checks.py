"""System checks of the settings: `manage.py check`, and with --deploy what production needs."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from environment.loading import is_set
from events.suggest import did_you_mean

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1", "")


@register("settings")
def check_environment(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report each wrong variable by its name, and unknown ones with the nearest known name."""
    from config.settings import env

    names = [variable.name for variable in env.variables]
    return [
        *(Error(str(problem), id="tailrace.E001") for problem in env.problems),
        *(
            Warning(f"{name}: no such setting{did_you_mean(name, names)}", id="tailrace.W001")
            for name in env.unknown()
        ),
    ]


@register("settings", deploy=True)
def check_encryption(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if is_set("ENCRYPTION_KEYS"):
        return []
    message = "ENCRYPTION_KEYS: is not set; another SECRET_KEY would make secrets unreadable"
    hint = "Set it to 32 random bytes in urlsafe base64; keep older keys behind the newest."
    return [Error(message, hint, id="tailrace.E110")]


@register("settings", deploy=True)
def check_engines(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The embedded engines are for one machine and one person."""
    embedded = settings.EMBEDDED
    return [
        Error(f"{name}: is not set, so the embedded {engine} would be used", hint, id=number)
        for used, name, engine, hint, number in (
            (embedded.postgres, "DATABASE_URL", "PostgreSQL",
             "Set it to postgres://user:password@host/name.", "tailrace.E101"),
            (embedded.valkey, "BROKER_URL", "Valkey",
             "Set it to redis://:password@host:6379/0 or amqps://user:password@host/vhost.",
             "tailrace.E102"),
        )
        if used
    ]  # fmt: skip


@register("settings", deploy=True)
def check_web(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the secret key, the host names and the public address."""
    messages: list[CheckMessage] = []
    public = urlsplit(settings.PUBLIC_URL)
    if not is_set("SECRET_KEY"):
        hint = "Set it to 50 random characters, the same for all processes of one installation."
        messages.append(Error("SECRET_KEY: is not set", hint, id="tailrace.E103"))
    if public.hostname in LOCAL_HOSTS:
        hint = "Set it to the public https address: links in mails and feeds need it."
        messages.append(Error("PUBLIC_URL: is not set or local", hint, id="tailrace.E104"))
    elif public.scheme != "https":
        messages.append(Warning("PUBLIC_URL: is not https", id="tailrace.W101"))
    if "*" in settings.ALLOWED_HOSTS:
        messages.append(Error("ALLOWED_HOSTS: * allows any Host header", id="tailrace.E105"))
    elif public.hostname not in settings.ALLOWED_HOSTS:
        message = f"ALLOWED_HOSTS: does not have {public.hostname}, the host of PUBLIC_URL"
        messages.append(Error(message, id="tailrace.E106"))
    return messages


@register("settings", deploy=True)
def check_mail_flower_logs(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if not is_set("EMAIL_URL"):
        hint = "Set it to smtp+tls://user:password@host:587."
        message = "EMAIL_URL: is not set, so mails are written to files"
        messages.append(Error(message, hint, id="tailrace.E107"))
    if len(settings.FLOWER_BASIC_AUTH.partition(":")[2]) < 12:
        message = "FLOWER_BASIC_AUTH: is not set, or its password is shorter than 12 characters"
        messages.append(Error(message, "Set it to user:password.", id="tailrace.E108"))
    if settings.LOG_FORMAT != "json":
        messages.append(Warning("LOG_FORMAT: is not json", id="tailrace.W102"))
    return messages

"""The environment variables of the platform itself; those of an app are in its settings.py."""

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import environ
from pydantic import AfterValidator, Field, PositiveInt

from environment.folders import var_dir
from environment.settings import AppSettings
from environment.types import Folder, Keys, Names, Url

MAIL_FILES = "config.devserver.mail_files.EmailBackend"
"""Writes mails to files, one each."""
INSECURE_KEY = "insecure-key-of-a-checkout-without-setup"

_POSTGRES = Url(
    ("postgres", "postgresql", "psql", "pgsql"),
    instead="Tailrace needs PostgreSQL. Set DATABASE_URL to postgres://user:password@host/name, "
    "or leave it empty to use the embedded PostgreSQL",
)
_BROKER = Url(
    ("redis", "rediss", "redis+socket", "amqp", "amqps", "pyamqp"),
    instead="Set BROKER_URL to redis://host:6379/0, or leave it empty to use the embedded Valkey",
)
_MAIL = Url(
    ("smtp", "smtps", "smtp+tls", "smtp+ssl", "filemail", "consolemail", "memorymail", "dummymail")
)


def database_settings(url: str) -> dict[str, Any]:
    """Return Django's description of the database at the URL."""
    try:
        return dict(environ.Env.db_url_config(url))
    except (KeyError, ValueError):
        raise ValueError("is not a database's URL") from None


def mail_settings(url: str) -> dict[str, Any]:
    """Return Django's EMAIL_* settings for the URL of a mail server; without one, for files."""
    files = {
        "EMAIL_BACKEND": MAIL_FILES,
        "EMAIL_FILE_PATH": str(var_dir() / "mail"),
        "EMAIL_TIMEOUT": 30,
    }
    if not url:
        return files
    try:
        parts = environ.Env.email_url_config(url)
    except (KeyError, ValueError):
        raise ValueError("is not a mail server's URL") from None
    if parts["EMAIL_FILE_PATH"]:
        parts["EMAIL_FILE_PATH"] = "/" + parts["EMAIL_FILE_PATH"].lstrip("/")
    if url.startswith("filemail:"):
        parts["EMAIL_BACKEND"] = MAIL_FILES
    return files | {
        key: value for key, value in parts.items() if key.isupper() and value is not None
    }


def _host(url: str) -> str:
    return urlsplit(url).hostname or "localhost"


def _secret_key_of_setup() -> str:
    path = var_dir() / "secret_key"
    return path.read_text().strip() if path.is_file() else INSECURE_KEY


class PlatformSettings(AppSettings):
    """Engines, web server, mail server, logs and the processes of `make run`."""

    prefixes = ("TAILRACE_", "ENCRYPTION_")

    VAR_DIR: Annotated[Path, Folder()] = Field(
        default_factory=var_dir, validation_alias="TAILRACE_VAR", examples=["var"]
    )
    """folder of everything that is written: engines, mails, bus, keys"""
    DATABASE_URL: Annotated[
        str, _POSTGRES, AfterValidator(lambda url: database_settings(url) and url)
    ] = ""
    """PostgreSQL 15 or newer; empty: an embedded one under var/"""
    BROKER_URL: Annotated[str, _BROKER] = ""
    """Redis 7, Valkey or RabbitMQ 3.12 and newer; empty: an embedded Valkey under var/"""
    DATABASE_PREPARE: bool = True
    """let the server keep prepared statements and settings of sessions; no behind a pooler that
    mixes the transactions of connections, such as PgBouncer of any version in transaction mode"""
    WEB_HOST: str = "127.0.0.1"
    """address of the web server"""
    WEB_PORT: PositiveInt = 8000
    """port of the web server"""
    WEB_THREADS: PositiveInt = 8
    """threads of each web process"""
    WEB_PROCESSES: PositiveInt = 1
    """web processes"""
    SECRET_KEY: str = Field(default_factory=_secret_key_of_setup)
    """signs sessions and links; empty: the key that setup keeps in var/secret_key"""
    DEBUG: bool = False
    """Django's error pages, with source code: never in production"""
    PUBLIC_URL: Annotated[
        str, Url(("http", "https")), AfterValidator(lambda url: url.rstrip("/"))
    ] = Field(
        default_factory=lambda data: f"http://127.0.0.1:{data.get('WEB_PORT', 8000)}",
        examples=["http://127.0.0.1:8000"],
    )
    """public address of Tailrace; links in mails and feeds begin with it"""
    ALLOWED_HOSTS: Names = Field(
        default_factory=lambda data: list(
            dict.fromkeys(["127.0.0.1", "localhost", "[::1]", _host(data["PUBLIC_URL"])])
        ),
        examples=["127.0.0.1,localhost,[::1]"],
    )
    """host names that requests may use; include the one of PUBLIC_URL"""
    EMAIL_URL: Annotated[str, _MAIL, AfterValidator(lambda url: mail_settings(url) and url)] = ""
    """mail server, smtp+tls://user:password@host:587; empty: files under var/mail"""
    DEFAULT_FROM_EMAIL: str = "Tailrace <tailrace@localhost>"
    """sender of all mails"""
    ENCRYPTION_KEYS: Annotated[list[str], Keys()] = []
    """encrypt the secrets in the database, the newest first; older ones still decrypt; empty: a
    key derived from SECRET_KEY"""
    LOG_FORMAT: Literal["console", "json"] = "console"
    """json for production, console to read"""
    LOG_LEVEL: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """lowest level that is logged"""
    SENTRY_DSN: Annotated[str, Url(("http", "https"))] = ""
    """error reports to Sentry; empty: none"""
    FLOWER_PORT: PositiveInt = 5555
    """port of Flower, on 127.0.0.1"""
    FLOWER_BASIC_AUTH: str = ""
    """user:password of Flower; empty: created by setup, in var/flower_auth"""
    WORKER_CONCURRENCY: PositiveInt = 2
    """worker processes of `make run`"""

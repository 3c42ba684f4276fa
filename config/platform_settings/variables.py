"""The environment variables of the platform. An app declares its variables in its settings.py."""

import secrets
from pathlib import Path
from typing import Annotated, Any, Literal

import environ
from pydantic import AfterValidator, Field, PositiveInt

from tailrace.config.platform_settings.insecure_settings import INSECURE, host_of
from tailrace.environment.folders import var_dir
from tailrace.environment.insecure import is_local
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Folder, Keys, Names, Networks, Url, Urls

MAIL_FILES = "tailrace.config.devserver.mail_files.EmailBackend"
"""The backend that writes each mail to a file."""

_POSTGRES = Url(
    ("postgres", "postgresql", "psql", "pgsql"),
    instead="Tailrace needs PostgreSQL. Set DATABASE_URL to postgres://user:password@host/name, "
    "or leave it empty to use the embedded PostgreSQL",
)
_BROKER = Url(
    ("redis", "rediss", "redis+socket", "amqp", "amqps", "pyamqp"),
    instead="Set BROKER_URL to redis://host:6379/0, or leave it empty to use the embedded Valkey",
)
_SMTP = ("smtp", "smtps", "smtp+tls", "smtp+ssl")
_MAIL = Urls((*_SMTP, "filemail", "consolemail", "memorymail", "dummymail"))


def database_settings(url: str) -> dict[str, Any]:
    """Return Django's settings of the database at the URL. Raises ValueError."""
    try:
        return dict(environ.Env.db_url_config(url))
    except (KeyError, ValueError):
        raise ValueError("is not the URL of a database") from None


def mail_settings(url: str) -> dict[str, Any]:
    """Return Django's EMAIL_* settings for the URL of a mail server. If the URL is empty, mails are
    written to files. Raises ValueError if it is invalid.
    """
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
        raise ValueError("is not the URL of a mail server") from None
    if parts["EMAIL_FILE_PATH"]:
        parts["EMAIL_FILE_PATH"] = "/" + parts["EMAIL_FILE_PATH"].lstrip("/")
    if url.startswith("filemail:"):
        parts["EMAIL_BACKEND"] = MAIL_FILES
    return files | {
        key: value for key, value in parts.items() if key.isupper() and value is not None
    }


def _checked_mail_servers(urls: list[str]) -> list[str]:
    """Return the URLs. Raises ValueError if they are invalid or cannot be used together."""
    servers = [mail_settings(url) for url in urls]
    if len(urls) > 1:
        names = [f"{each.get('EMAIL_HOST')}:{each.get('EMAIL_PORT', 25)}" for each in servers]
        problems = [f"{name!r} is listed twice" for name in names if names.count(name) > 1]
        problems += [
            f"{url.partition(':')[0]!r} cannot be one of several URLs: use only {', '.join(_SMTP)}"
            for url in urls
            if not url.startswith(tuple(f"{scheme}:" for scheme in _SMTP))
        ]
        if problems:
            raise ValueError(*dict.fromkeys(problems))
    return urls


def secret_key_file() -> Path:
    """Return the path of the file with the key that setup creates."""
    return var_dir() / "secret_key"


def secret_key_of_setup() -> str:
    """Return the key in var/secret_key, which setup creates; "" if it cannot be read."""
    try:
        return secret_key_file().read_text().strip()
    except OSError:
        return ""


class PlatformSettings(AppSettings):
    """Engines, web server, mail server, logs and the processes of `make run`."""

    prefixes = ("TAILRACE_", "ENCRYPTION_")
    insecure = INSECURE

    VAR_DIR: Annotated[Path, Folder()] = Field(
        default_factory=var_dir, validation_alias="TAILRACE_VAR", examples=["var"]
    )
    """folder for all files that Tailrace writes: engines, mails, bus, keys"""
    DATABASE_URL: Annotated[
        str, _POSTGRES, AfterValidator(lambda url: database_settings(url) and url)
    ] = ""
    """PostgreSQL 15 or newer; empty: an embedded one under var/"""
    BROKER_URL: Annotated[str, _BROKER] = ""
    """Redis 7, Valkey or RabbitMQ 3.12 and newer; empty: an embedded Valkey under var/"""
    DATABASE_PREPARE: bool = True
    """use prepared statements and session settings; set it to no behind a pooler in transaction
    mode, such as PgBouncer of any version"""
    WEB_HOST: str = "127.0.0.1"
    """address of the web server"""
    WEB_PORT: PositiveInt = 8000
    """port of the web server"""
    WEB_THREADS: PositiveInt = 8
    """threads of each web process"""
    WEB_PROCESSES: PositiveInt = 1
    """web processes"""
    WEB_READ_SECONDS: PositiveInt = 10
    """seconds within which the headers of a request must arrive, and for which its body may pause;
    the body may take another second for each 16 KiB"""
    WEB_STATEMENT_SECONDS: PositiveInt = 30
    """seconds that a database statement of a request may take; then the answer is 503"""
    WEB_LOCK_SECONDS: PositiveInt = 10
    """seconds that a request waits for a database lock; then the answer is 503"""
    WEB_PROXIES: Annotated[list[str], Networks()] = ["127.0.0.1/32", "::1/128"]
    """networks of the proxies in front of the web server; X-Forwarded-Proto and X-Forwarded-For of
    other clients are ignored"""
    # A random key is for this process only: for commands that sign nothing.
    SECRET_KEY: str = Field(
        default_factory=lambda: secret_key_of_setup() or secrets.token_urlsafe(50)
    )
    """signs sessions and links; empty: the key in var/secret_key, which setup creates"""
    DEBUG: bool = False
    """Django's error pages, with source code: never in production"""
    PUBLIC_URL: Annotated[
        str, Url(("http", "https")), AfterValidator(lambda url: url.rstrip("/"))
    ] = Field(
        default_factory=lambda data: f"http://127.0.0.1:{data.get('WEB_PORT', 8000)}",
        examples=["http://127.0.0.1:8000"],
    )
    """public URL of Tailrace; links in mails and feeds begin with it"""
    ALLOWED_HOSTS: Names = Field(
        default_factory=lambda data: list(
            dict.fromkeys(
                ["127.0.0.1", "localhost", "[::1]", host_of(data["PUBLIC_URL"]) or "localhost"]
            )
        ),
        examples=["127.0.0.1,localhost,[::1]"],
    )
    """host names that requests may use; must contain the host of PUBLIC_URL"""
    REQUIRE_SECOND_FACTOR: bool = Field(
        default_factory=lambda data: not data["DEBUG"] and not is_local(data["PUBLIC_URL"]),
        examples=["yes, unless PUBLIC_URL is local"],
    )
    """staff need a second factor"""
    EMAIL_URL: Annotated[list[str], _MAIL, AfterValidator(_checked_mail_servers)] = []
    """mail server, smtp+tls://user:password@host:587, or several; empty: files under var/mail"""
    DEFAULT_FROM_EMAIL: str = "Tailrace <tailrace@localhost>"
    """sender of all mails"""
    ENCRYPTION_KEYS: Annotated[list[str], Keys()] = []
    """keys for the secrets in the database, newest first: the newest one encrypts, all of them
    decrypt; empty: a key derived from SECRET_KEY"""
    LOG_FORMAT: Literal["console", "json"] = "console"
    """json for production, console for reading"""
    LOG_LEVEL: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """lowest level that is logged"""
    SENTRY_DSN: Annotated[str, Url(("http", "https"))] = ""
    """Sentry DSN for error reports; empty: none are sent"""
    FLOWER_PORT: PositiveInt = 5555
    """port of Flower, on 127.0.0.1"""
    FLOWER_BASIC_AUTH: str = ""
    """user:password of Flower; empty: created by setup, in var/flower_auth"""
    WORKER_CONCURRENCY: PositiveInt = 2
    """worker processes of `make run`"""
    SAMPLE_BACKEND_PORT: PositiveInt = 5352
    """port of the sample backend of `make run`, if OBS_BACKEND_URL is not set"""
    PROTECTION_SAMPLE_PORT: int = Field(5354, ge=1, le=65535)
    """port of the sample sources of `make run`, if PROTECTION_HIBP_KEY is not set"""
    RECORDS_SAMPLE_PORT: int = Field(5355, ge=1, le=65535)
    """port of the sample repository of `make run`, if RECORDS_LOCAL_SOURCES is not set"""

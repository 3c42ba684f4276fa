"""Reads environment variables, and remembers what is wrong with them and what they mean.

A wrong variable never raises here: its default is used and the problem is kept, so that
`manage.py check` can name all of them at once and `boot.start()` can stop with one line each.
"""

import base64
import binascii
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import environ

from events.suggest import did_you_mean

TRUE = {"1", "true", "yes", "on", "y", "t"}
FALSE = {"0", "false", "no", "off", "n", "f", ""}
ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+):[0-9]{1,5}")
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
# Variables that start so are ours: an unknown one is most likely a slip of the pen.
PREFIXES = (
    "OBS_", "BUS_", "JOBS_", "EVENTS_", "PROJECT_LOG_", "TAILRACE_",
    "ENCRYPTION_", "WEBHOOK_", "VAPID_", "SMS_", "PHOTOS_",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """A variable that cannot be used as it is."""

    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


@dataclass(frozen=True)
class Variable:
    """One line of docs/configuration.md."""

    name: str
    kind: str
    default: str
    meaning: str


@dataclass
class Environment:
    """The variables of one process. Reading one declares it."""

    values: Mapping[str, str] = field(default_factory=lambda: os.environ)
    problems: list[Problem] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    patterns: tuple[str, ...] = ()

    def text(self, name: str, default: str, meaning: str, *, shown: str | None = None) -> str:
        """The variable as it stands, without blanks around it."""
        return self._read(name, "text", default, meaning, shown).strip()

    def choice(self, name: str, default: str, choices: tuple[str, ...], meaning: str) -> str:
        """One of `choices`."""
        value = self._read(name, " or ".join(choices), default, meaning).strip()
        if value in choices:
            return value
        return self._wrong(name, value, " or ".join(choices), default)

    def flag(self, name: str, default: bool, meaning: str) -> bool:
        """yes or no, true or false, 1 or 0."""
        value = self._read(name, "yes or no", "yes" if default else "no", meaning).strip().lower()
        if value in TRUE | FALSE:
            return value in TRUE
        return self._wrong(name, value, "yes or no", default)

    def number(
        self,
        name: str,
        default: float,
        meaning: str,
        *,
        least: float = 0,
        most: float | None = None,
    ) -> Any:
        """A number of the default's type, from `least` to `most`."""
        kind = type(default)
        limits = f"{least:g} or more" if most is None else f"{least:g} to {most:g}"
        wanted = f"{'a whole number' if kind is int else 'a number'}, {limits}"
        value = self._read(name, wanted, str(default), meaning).strip()
        try:
            number = kind(value)
        except ValueError:
            return self._wrong(name, value, wanted, default)
        if least <= number < float("inf") and (most is None or number <= most):
            return number
        return self._wrong(name, value, wanted, default)

    def names(self, name: str, default: list[str], meaning: str) -> list[str]:
        """A list separated by commas."""
        value = self._read(name, "list, by commas", ",".join(default), meaning)
        return [part.strip() for part in value.split(",") if part.strip()]

    def keys(self, name: str, meaning: str) -> list[str]:
        """Keys of 32 bytes in urlsafe base64; a wrong one is told by its place, never shown."""
        value = self._read(name, "keys, by commas", "", meaning)
        found = [part.strip() for part in value.split(",") if part.strip()]
        wrong = [place for place, key in enumerate(found, 1) if not _is_key(key)]
        for place in wrong:
            message = f"key {place} of {len(found)} is not 32 bytes in urlsafe base64"
            self.problems.append(Problem(name, message))
        return [] if wrong else found

    def key(self, name: str, meaning: str) -> str:
        """One key of 32 bytes in urlsafe base64; empty if it is not set."""
        value = self._read(name, "key", "", meaning).strip()
        if not value or _is_key(value):
            return value
        self.problems.append(Problem(name, "is not 32 bytes in urlsafe base64"))
        return ""

    def addresses(self, name: str, meaning: str) -> list[str]:
        """Addresses of servers, host:port by commas."""
        value = self._read(name, "host:port, by commas", "", meaning)
        found = [part.strip() for part in value.split(",") if part.strip()]
        for part in found:
            if not ADDRESS.fullmatch(part):
                message = f"{_masked(part)!r} is not host:port; write e.g. kafka.example.org:9092"
                self.problems.append(Problem(name, message))
        return found

    def topic(self, name: str, default: str, meaning: str) -> str:
        """A name of a Kafka topic or group of consumers, as Kafka allows them."""
        value = self._read(name, "name", default, meaning).strip()
        if value == default or (TOPIC.fullmatch(value) and value not in (".", "..")):
            return value
        return self._wrong(name, value, "up to 249 letters, digits, dots, _ and -", default)

    def networks(self, name: str, meaning: str) -> list[str]:
        """Networks of addresses, such as 10.0.0.0/8."""
        found = []
        for part in self.names(name, [], meaning):
            try:
                found.append(str(ipaddress.ip_network(part)))
            except ValueError as error:
                self.problems.append(Problem(name, f"{error}; write e.g. 10.0.0.0/8"))
        return found

    def url(
        self,
        name: str,
        default: str,
        schemes: tuple[str, ...],
        meaning: str,
        *,
        instead: str = "",
        shown: str | None = None,
    ) -> str:
        """A URL whose scheme is one of `schemes`; `instead` names the way out of a wrong one."""
        value = self._read(name, "URL", default, meaning, shown).strip()
        if not value or self._is_url(name, value, schemes, instead):
            return value
        return default

    def urls(
        self,
        name: str,
        default: dict[str, str],
        schemes: tuple[str, ...],
        meaning: str,
        *,
        unnamed: str = "",
        shown: str | None = None,
    ) -> dict[str, str]:
        """URLs by name: `name=url,other=url`. A single URL without a name is called `unnamed`."""
        joined = ",".join(f"{key}={url}" for key, url in default.items())
        value = self._read(name, "name=URL, by commas", joined, meaning, shown)
        found: dict[str, str] = {}
        for part in filter(None, (part.strip() for part in value.split(","))):
            key, separator, url = part.partition("=")
            if not separator or "://" in key:
                key, url = unnamed, part
            if not key or key in found:
                why = "is there twice" if key else "has no name"
                self.problems.append(Problem(name, f"{_masked(url)!r} {why}; write name=URL"))
            elif self._is_url(name, url, schemes, ""):
                found[key] = url
        return found

    def by_pattern(self, pattern: str, meaning: str) -> dict[str, str]:
        """Variables that start with `pattern` (`BUS_SECRET_`), by the rest of their name."""
        self.patterns += (pattern,)
        self.variables[f"{pattern}<NAME>"] = Variable(f"{pattern}<NAME>", "text", "", meaning)
        return {
            key.removeprefix(pattern): value.strip()
            for key, value in self.values.items()
            if key.startswith(pattern)
        }

    def unknown(self) -> list[Problem]:
        """Variables with our prefixes that nobody reads, each with the nearest known name."""
        strangers = [
            key
            for key in self.values
            if key.startswith(PREFIXES)
            and key not in self.variables
            and not key.startswith(self.patterns or ("\0",))
        ]
        return [
            Problem(key, f"no such setting{did_you_mean(key, self.variables)}") for key in strangers
        ]

    def refuse(self, name: str, value: Any, message: str) -> None:
        """Keep a problem that a value has only beside another variable."""
        self.problems.append(Problem(name, f"{value!r} {message}"))

    def is_set(self, name: str) -> bool:
        """Whether somebody set the variable to something."""
        return bool(self.values.get(name, "").strip())

    def _read(
        self, name: str, kind: str, default: str, meaning: str, shown: str | None = None
    ) -> str:
        known = default if shown is None else shown
        self.variables[name] = Variable(name, kind, known, meaning)
        return self.values.get(name, "") if self.is_set(name) else default

    def _wrong(self, name: str, value: str, wanted: str, default: Any) -> Any:
        self.problems.append(Problem(name, f"{value!r} is not {wanted}"))
        return default

    def _is_url(self, name: str, value: str, schemes: tuple[str, ...], instead: str) -> bool:
        """Whether the value is usable; if not, the problem is kept without any password."""
        try:
            parts = urlsplit(value)
            parts.port  # noqa: B018 - raises for a port that is no number
        except ValueError as error:
            self.problems.append(Problem(name, f"is not a URL ({error})"))
            return False
        if parts.scheme in schemes:
            return True
        wanted = ", ".join(f"{scheme}://" for scheme in schemes)
        scheme = parts.scheme or _masked(value)
        message = instead if instead and scheme == "sqlite" else f"starts with {wanted}"
        self.problems.append(Problem(name, f"{scheme!r} is not usable here: {message}"))
        return False


MAIL_FILES = "subscriptions.mail_files.EmailBackend"
"""Where mails are files: one file each."""


def mail_settings(env: Environment, url: str) -> dict[str, Any]:
    """Django's EMAIL_* settings out of EMAIL_URL."""
    try:
        found = environ.Env.email_url_config(url)
    except (KeyError, ValueError):
        env.problems.append(Problem("EMAIL_URL", "is not a mail server's URL"))
        return {}
    if found["EMAIL_FILE_PATH"]:
        found["EMAIL_FILE_PATH"] = "/" + found["EMAIL_FILE_PATH"].lstrip("/")
    if url.startswith("filemail:"):
        found["EMAIL_BACKEND"] = MAIL_FILES
    return {key: value for key, value in found.items() if key.isupper() and value is not None}


def database_settings(env: Environment, url: str) -> dict[str, Any]:
    """Django's description of one database out of DATABASE_URL."""
    if not url:
        return {}
    try:
        return dict(environ.Env.db_url_config(url))
    except (KeyError, ValueError):
        env.problems.append(Problem("DATABASE_URL", "is not a database's URL"))
        return {}


def _is_key(value: str) -> bool:
    try:
        padded = value + "=" * (-len(value) % 4)
        return len(base64.b64decode(padded, altchars=b"-_", validate=True)) == 32
    except (binascii.Error, ValueError):
        return False


def _masked(value: str) -> str:
    """The value without user and password."""
    return value.rsplit("@", 1)[-1][:60]

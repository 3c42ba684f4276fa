"""Types of variables besides text and numbers, as in `X: Annotated[str, Url(("https",))] = ""`."""

import base64
import binascii
import ipaddress
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_HOST = re.compile(r"([a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?")


class Rule(ABC):
    """Converts the text of a variable to a value. Other values must have the field's type."""

    kind: ClassVar[str]
    """The description of the value in the table of docs/reference/settings.md."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """Return the value, or raise ValueError with one argument, a message, per problem."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._read_text, handler(source))

    def _read_text(self, value: Any) -> Any:
        return self.read(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Url(Rule):
    """A URL with one of the schemes; `instead` is the advice for a URL with the scheme sqlite."""

    kind = "URL"
    schemes: tuple[str, ...]
    instead: str = ""

    def read(self, text: str) -> str:
        if problem := url_problem(text, self.schemes, self.instead):
            raise ValueError(problem)
        return text


@dataclass(frozen=True)
class Urls(Rule):
    """URLs separated by blanks or commas. A blank or comma that is not followed by a scheme and ://
    belongs to the URL, as in a password."""

    kind = "URLs, by blanks or commas"
    schemes: tuple[str, ...]

    def read(self, text: str) -> list[str]:
        urls = re.split(r"[\s,]+(?=[\w+.-]+://)", text.strip(" ,"))
        problems = []
        for number, url in enumerate(urls, 1):
            if problem := url_problem(url, self.schemes) or _no_host(url):
                which = f"{number} of {len(urls)}, {masked(url)!r}: " if len(urls) > 1 else ""
                problems.append(which + problem)
        if problems:
            raise ValueError(*problems)
        return urls


@dataclass(frozen=True)
class NamedUrls(Rule):
    """URLs by name: `name=url,other=url`. `unnamed` is the name for a URL without a name."""

    kind = "name=URL, by commas"
    schemes: tuple[str, ...]
    unnamed: str = ""

    def read(self, text: str) -> dict[str, str]:
        urls: dict[str, str] = {}
        problems = []
        for part in split(text):
            name, separator, url = part.partition("=")
            if not separator or "://" in name:
                name, url = self.unnamed, part
            if not name or name in urls:
                reason = "has a name that is used twice" if name else "has no name"
                problems.append(f"{masked(url)!r} {reason}; write name=URL")
            elif problem := url_problem(url, self.schemes):
                problems.append(problem)
            else:
                urls[name] = url
        if problems:
            raise ValueError(*problems)
        return urls


class ByHost(Rule):
    """Texts by host: `host=text,other.example:3000=text`. The texts may be secrets, so messages
    name an entry only by its position."""

    kind = "host=text, by commas"

    def read(self, text: str) -> dict[str, str]:
        entries = [part.partition("=") for part in split(text)]
        values: dict[str, str] = {}
        problems = []
        for number, (name, _separator, value) in enumerate(entries, 1):
            host, which = name.strip().lower(), f"entry {number} of {len(entries)}"
            if not _HOST.fullmatch(host) or not value.strip():
                problems.append(f"{which} is not host=text, such as git.example.org=…")
            elif host in values:
                problems.append(f"{which} names the same host as an earlier entry")
            values[host] = value.strip()
        if problems:
            raise ValueError(*problems)
        return values


class CommaSeparated(Rule):
    kind = "list, by commas"

    def read(self, text: str) -> list[str]:
        return split(text)


class Networks(Rule):
    """Networks of IP addresses, such as 10.0.0.0/8, separated by commas."""

    kind = "list, by commas"

    def read(self, text: str) -> list[str]:
        networks, problems = [], []
        for network in split(text):
            try:
                networks.append(str(ipaddress.ip_network(network)))
            except ValueError as error:
                problems.append(f"{error}; write e.g. 10.0.0.0/8")
        if problems:
            raise ValueError(*problems)
        return networks


class Folder(Rule):
    """The path of a folder; the folder need not exist."""

    kind = "text"

    def read(self, text: str) -> Path:
        return Path(text).resolve()


class Key(Rule):
    """A key of 32 bytes in urlsafe base64. Messages never contain the key."""

    kind = "key"

    def read(self, text: str) -> str:
        if not is_key(text):
            raise ValueError("is not 32 bytes in urlsafe base64")
        return text


class Keys(Rule):
    """Keys of 32 bytes in urlsafe base64. Messages name an invalid key by its position."""

    kind = "keys, by commas"

    def read(self, text: str) -> list[str]:
        keys = split(text)
        wrong = [number for number, key in enumerate(keys, 1) if not is_key(key)]
        if wrong:
            message = "key {} of {} is not 32 bytes in urlsafe base64"
            raise ValueError(*(message.format(number, len(keys)) for number in wrong))
        return keys


Names = Annotated[list[str], CommaSeparated()]


def split(text: str) -> list[str]:
    """Return the parts between commas, stripped of blanks; empty parts are left out."""
    return [part.strip() for part in text.split(",") if part.strip()]


def url_problem(text: str, schemes: tuple[str, ...], instead: str = "") -> str:
    """Return the problem of a URL, without its password, or an empty string."""
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - raises for a port that is not a number
    except ValueError:  # its text may contain a part of the password
        return (
            "is not a URL: the port must be a number; write / ? # @ in a password as"
            " %2F %3F %23 %40"
        )
    if parts.scheme in schemes:
        return ""
    scheme = parts.scheme or masked(text)
    allowed = ", ".join(f"{each}://" for each in schemes)
    advice = instead if scheme == "sqlite" and instead else f"use {allowed}"
    return f"{scheme!r} is not usable here: {advice}"


def _no_host(url: str) -> str:
    """Return the problem of a URL's host, or an empty string."""
    if re.search(r"[\s,]", urlsplit(url).hostname or ""):
        return f"{masked(url)!r} is not one host; begin each URL with its scheme, as in smtp://host"
    return ""


def is_key(text: str) -> bool:
    """Whether the text is 32 bytes in urlsafe base64, with or without padding."""
    try:
        padded = text + "=" * (-len(text) % 4)
        return len(base64.b64decode(padded, altchars=b"-_", validate=True)) == 32
    except (binascii.Error, ValueError):
        return False


def masked(text: str) -> str:
    """Return the text without user and password, cut to 60 characters."""
    return text.rsplit("@", 1)[-1][:60]

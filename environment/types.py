"""What a variable may hold beside text and numbers: `X: Annotated[str, Url("https")] = ""`."""

import base64
import binascii
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class Rule(ABC):
    """How the text of a variable becomes a value."""

    kind: ClassVar[str]
    """What the value is, in the table of docs/configuration.md."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """Return the value, or raise ValueError with a message for each thing that is wrong."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))


@dataclass(frozen=True)
class Url(Rule):
    """A URL with one of the schemes; `instead` is the advice for one that begins sqlite://."""

    kind = "URL"
    schemes: tuple[str, ...]
    instead: str = ""

    def read(self, text: str) -> str:
        if problem := url_problem(text, self.schemes, self.instead):
            raise ValueError(problem)
        return text


@dataclass(frozen=True)
class NamedUrls(Rule):
    """URLs by name: `name=url,other=url`. A URL without a name gets the name `unnamed`."""

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
                reason = "is there twice" if name else "has no name"
                problems.append(f"{masked(url)!r} {reason}; write name=URL")
            elif problem := url_problem(url, self.schemes):
                problems.append(problem)
            else:
                urls[name] = url
        if problems:
            raise ValueError(*problems)
        return urls


class CommaSeparated(Rule):
    """A list separated by commas."""

    kind = "list, by commas"

    def read(self, text: str) -> list[str]:
        return split(text)


class Folder(Rule):
    """A path of a folder; it need not exist."""

    kind = "text"

    def read(self, text: str) -> Path:
        return Path(text).resolve()


class Key(Rule):
    """A key of 32 bytes in urlsafe base64. No message shows it."""

    kind = "key"

    def read(self, text: str) -> str:
        if not is_key(text):
            raise ValueError("is not 32 bytes in urlsafe base64")
        return text


class Keys(Rule):
    """Keys of 32 bytes in urlsafe base64. A message names a wrong one by its position."""

    kind = "keys, by commas"

    def read(self, text: str) -> list[str]:
        keys = split(text)
        wrong = [number for number, key in enumerate(keys, 1) if not is_key(key)]
        if wrong:
            message = "key {} of {} is not 32 bytes in urlsafe base64"
            raise ValueError(*(message.format(number, len(keys)) for number in wrong))
        return keys


Names = Annotated[list[str], CommaSeparated()]


def by_prefix(prefix: str) -> dict[str, str]:
    """Return the environment variables with the prefix, by the rest of their names."""
    return {
        name.removeprefix(prefix): value.strip()
        for name, value in os.environ.items()
        if name.startswith(prefix)
    }


def split(text: str) -> list[str]:
    """Return the parts between commas, without blanks and empty ones."""
    return [part.strip() for part in text.split(",") if part.strip()]


def url_problem(text: str, schemes: tuple[str, ...], instead: str = "") -> str:
    """Return what is wrong with a URL, without its password; empty if nothing is."""
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - raises for a port that is not a number
    except ValueError as error:
        return f"is not a URL ({error})"
    if parts.scheme in schemes:
        return ""
    scheme = parts.scheme or masked(text)
    allowed = ", ".join(f"{each}://" for each in schemes)
    advice = instead if scheme == "sqlite" and instead else f"use {allowed}"
    return f"{scheme!r} is not usable here: {advice}"


def is_key(text: str) -> bool:
    """Whether the text is 32 bytes in urlsafe base64, with or without padding."""
    try:
        padded = text + "=" * (-len(text) % 4)
        return len(base64.b64decode(padded, altchars=b"-_", validate=True)) == 32
    except (binascii.Error, ValueError):
        return False


def masked(text: str) -> str:
    """Return the text without user and password, and cut."""
    return text.rsplit("@", 1)[-1][:60]

"""The data brokers. Operators write them in a YAML file; one wrong entry makes the file invalid."""

from collections.abc import Iterator, Mapping
from datetime import date
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Self
from urllib.parse import quote, urlsplit

import yaml
from django.conf import settings
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from tailrace.domains.protection.services.removals.person import PLACEHOLDERS, MailAddress, Person
from tailrace.environment.field_errors import field_error, hint
from tailrace.environment.suggest import did_you_mean

MAX_BROKERS = 500
MAX_PROBLEMS = 20


class InvalidBrokers(ValueError):
    """The file of brokers is invalid. `problems` names each wrong entry, key and value."""

    def __init__(self, *problems: str) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(self.problems))


class UnknownBroker(LookupError):
    """The file has no broker with this key."""


class Method(StrEnum):
    """How a broker accepts removal requests."""

    MAIL = "mail"
    FORM = "form"
    MANUAL = "manual"


class Confirmation(StrEnum):
    """The confirmation that a broker requires after a request."""

    NONE = "none"
    LINK = "link"
    """The page after the form has a link that has to be followed."""
    MAIL = "mail"
    """The broker mails a link that the person has to open."""


def _template(text: str) -> str:
    """Check that the text has only known placeholders in braces, such as `{name}`; return it."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}; write placeholders such as {{name}}") from None
    for _literal, name, spec, conversion in parts:
        if name is not None and (name not in PLACEHOLDERS or spec or conversion):
            known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
            raise ValueError(f"{{{name}}} in {text!r} is not one of {known}")
    return text


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ValueError(f"{text!r} is not a URL that begins with https://")
    if "{" in parts.netloc:
        raise ValueError(f"{text!r}: the host must not contain a placeholder")
    return text


def _listed(value: Any) -> Any:
    """Return a list with the number, or another value unchanged."""
    return [value] if isinstance(value, int) else value


Address = Annotated[str, AfterValidator(_url)]
Template = Annotated[str, StringConstraints(max_length=500), AfterValidator(_template)]
NotEmpty = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Verification(BaseModel):
    """How to check whether a person is still listed.

    A page without a sign of `not listed` counts as `listed` if it has the person's name, otherwise
    as unclear. An error page therefore never counts as a removal.
    """

    model_config = ConfigDict(extra="forbid")
    listing_url: Annotated[Address, AfterValidator(_template)]
    not_listed_status: Annotated[list[int], BeforeValidator(_listed)] = []
    """One or several statuses, for example 404, if each person has a page of their own."""
    not_listed_text: str = ""
    """The text of a search page without results."""

    @model_validator(mode="after")
    def _has_a_sign(self) -> Self:
        if not self.not_listed_status and not self.not_listed_text:
            raise ValueError("set not_listed_status or not_listed_text")
        return self


class Broker(BaseModel):
    """An entry of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    key: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{1,49}$")]
    names: Annotated[list[NotEmpty], Field(min_length=1)]
    """The names of the broker, the usual name first."""
    url: Address
    removal_url: Address
    """The page about removals; with the method `form`, the page with the form."""
    method: Method
    mail: MailAddress | None = None
    """The address for requests by mail."""
    fields: Annotated[dict[str, Template], Field(min_length=1)]
    """The data for the broker: by the names of the form's fields, or by labels in a mail."""
    accepted_text: str = ""
    """A text of the page that follows an accepted form."""
    confirmation: Confirmation = Confirmation.NONE
    verification: Verification | None = None
    instructions: str = ""
    """What a person has to do if a program cannot, or may not, send the request."""
    per_minute: Annotated[float, Field(gt=0, le=600)] = 6
    """Maximum number of requests and checks per minute."""
    working_as_of: date
    """When somebody last tested the entry."""

    @property
    def name(self) -> str:
        return self.names[0]

    @model_validator(mode="after")
    def _fits_the_method(self) -> Self:
        if self.method is Method.MAIL and self.mail is None:
            raise ValueError("method mail needs mail, the address for requests")
        if self.method is Method.FORM and not self.accepted_text:
            raise ValueError("method form needs accepted_text, a text of the page after the form")
        if self.method is Method.MANUAL and not self.instructions:
            raise ValueError("method manual needs instructions for the person")
        if self.confirmation is Confirmation.LINK and self.method is not Method.FORM:
            raise ValueError("confirmation link needs method form")
        return self

    def filled(self, person: Person) -> dict[str, str]:
        """Return the broker's fields, filled in with this person's data."""
        values = person.values()
        return {name: text.format_map(values) for name, text in self.fields.items()}

    def listing_url(self, person: Person) -> str:
        """Return the URL where the broker would list this person; empty if it is unknown."""
        if self.verification is None:
            return ""
        values = {name: quote(value, safe="") for name, value in person.values().items()}
        return self.verification.listing_url.format_map(values)

    def missing(self, person: Person) -> list[str]:
        """Return the names of the fields that the broker needs and the person left empty."""
        text = " ".join(self.fields.values())
        if self.verification is not None:
            text += self.verification.listing_url
        wanted = {name for _, name, _, _ in Formatter().parse(text) if name}
        return sorted(name for name in wanted if not person.values()[name])


def all_brokers() -> Mapping[str, Broker]:
    """Return the brokers by key, in the order of the file. Raises InvalidBrokers."""
    if not settings.PROTECTION_BROKERS_FILE:
        return {}
    path = Path(settings.PROTECTION_BROKERS_FILE)
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise InvalidBrokers(f"{path}: {error.strerror or error}") from None


def find_broker(key: str) -> Broker:
    """Return the broker with this key. Raises UnknownBroker."""
    brokers = all_brokers()
    if key not in brokers:
        raise UnknownBroker(f"there is no broker {key!r}{did_you_mean(key, brokers)}")
    return brokers[key]


def known_brokers() -> Mapping[str, Broker]:
    """Return the brokers, or none if their file is invalid, which a system check reports."""
    try:
        return all_brokers()
    except InvalidBrokers:
        return {}


def name_of(key: str) -> str:
    """Return the name of the broker for a page, or its key if the file does not have it."""
    broker = known_brokers().get(key)
    return broker.name if broker else key


@lru_cache(maxsize=4)
def _read(path: Path, changed_at: int) -> dict[str, Broker]:
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        text = " ".join(str(error).split())
        raise InvalidBrokers(f"{path.name} is not valid YAML: {text}") from None
    if not isinstance(entries, list):
        why = "is not a list of brokers: each entry begins with `- key:`"
        raise InvalidBrokers(f"{path.name} {why}")
    if len(entries) > MAX_BROKERS:
        why = f"has {len(entries)} brokers; the maximum is {MAX_BROKERS}"
        raise InvalidBrokers(f"{path.name} {why}")
    brokers: dict[str, Broker] = {}
    problems: list[str] = []
    for number, entry in enumerate(entries, 1):
        try:
            broker = Broker.model_validate(entry)
        except ValidationError as error:
            problems += _problems_of(number, entry, error)
            continue
        if broker.key in brokers:
            problems.append(f"{broker.key}: two brokers have this key")
        brokers[broker.key] = broker
    if problems:
        raise InvalidBrokers(*problems[:MAX_PROBLEMS])
    return brokers


def _problems_of(number: int, entry: Any, error: ValidationError) -> Iterator[str]:
    """Yield the errors of an entry, each with its key; unknown keys with a suggestion."""
    key = entry.get("key") if isinstance(entry, dict) else None
    for each in error.errors():
        field = field_error(each, entry)
        path = ".".join(map(str, field.path))
        within_verification = each["loc"][:1] == ("verification",)
        model: type[BaseModel] = Verification if within_verification else Broker
        suggestion = hint(model, {**each, "loc": each["loc"][-1:]})
        yield f"{key or f'entry {number}'}: {path and f'{path}: '}{field.detail}{suggestion}"

"""Have I Been Pwned, version 3: breaches, pastes and the list of breaches.

https://haveibeenpwned.com/API/v3
"""

from collections.abc import Sequence
from datetime import date
from html.parser import HTMLParser
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from django.conf import settings
from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic.types import AwareDatetime

from tailrace.domains.protection.models import Kind
from tailrace.domains.protection.services.providers.ask import Answer, Provider, ask
from tailrace.domains.protection.services.providers.source import (
    FoundBreach,
    Source,
    ValueNotAccepted,
)
from tailrace.jobs.destinations.request_errors import RequestRefused, Unavailable
from tailrace.net.sanitize import one_line, printable

USER_AGENT = "Tailrace identity protection"
EMAIL_ADDRESSES = "Email addresses"
"""The class of data in a paste, as the service names it."""
MANY_BYTES = 20_000_000
"""Limit for the list of all breaches."""
LONGEST = 4000
"""Maximum number of characters of the description of a breach."""
_IGNORED_TAGS = ("script", "style")
T = TypeVar("T")
Params = Sequence[tuple[str, str]]

_Line = Annotated[str, BeforeValidator(lambda text: one_line(text or ""))]
_EMPTY_IS_NONE = BeforeValidator(lambda text: text or None)
_Moment = Annotated[AwareDatetime | None, _EMPTY_IS_NONE]


class BreachModel(BaseModel):
    """A breach as the service describes it. Other fields are ignored."""

    name: _Line = Field(alias="Name", min_length=1)
    title: _Line = Field("", alias="Title")
    domain: _Line = Field("", alias="Domain")
    breached_on: Annotated[date | None, _EMPTY_IS_NONE] = Field(None, alias="BreachDate")
    added_at: _Moment = Field(None, alias="AddedDate")
    modified_at: _Moment = Field(None, alias="ModifiedDate")
    accounts: int | None = Field(None, alias="PwnCount")
    description: str | None = Field("", alias="Description")
    data_classes: list[_Line] = Field([], alias="DataClasses", max_length=500)

    def to_breach(self) -> FoundBreach:
        description = plain_text(self.description or "")
        changes = {"title": self.title or self.name, "description": description}
        return FoundBreach(**self.model_dump() | changes)


class PasteModel(BaseModel):
    Source: Annotated[_Line, Field(min_length=1)]
    Id: Annotated[_Line, Field(min_length=1)]
    Title: _Line = ""
    Date: _Moment = None
    EmailCount: int | None = None

    def to_breach(self) -> FoundBreach:
        return FoundBreach(
            name=f"{self.Source}:{self.Id}",
            title=self.Title or f"Paste on {self.Source}",
            breached_on=self.Date.date() if self.Date else None,
            added_at=self.Date,
            data_classes=[EMAIL_ADDRESSES],
            accounts=self.EmailCount,
        )


_BREACHES = TypeAdapter(list[BreachModel])
_PASTES = TypeAdapter(list[PasteModel])
_BREACH = TypeAdapter(BreachModel)


class HibpBreaches(Source):
    """Have I Been Pwned: breaches"""

    name = "hibp_breaches"
    kinds = frozenset({Kind.EMAIL, Kind.PHONE, Kind.USERNAME})

    def why_not(self) -> str:
        return "" if settings.PROTECTION_HIBP_KEY else "PROTECTION_HIBP_KEY is not set"

    async def lookup(self, kind: str, value: str) -> Sequence[FoundBreach]:
        params = [("truncateResponse", "false")]
        answer = await _ask_account("breachedaccount", value, _BREACHES, params)
        return [breach.to_breach() for breach in answer]


class HibpPastes(HibpBreaches):
    """Have I Been Pwned: pastes"""

    name = "hibp_pastes"
    kinds = frozenset({Kind.EMAIL})

    async def lookup(self, kind: str, value: str) -> Sequence[FoundBreach]:
        return [paste.to_breach() for paste in await _ask_account("pasteaccount", value, _PASTES)]


async def latest_breach() -> FoundBreach | None:
    """Return the newest breach, or None if there is none yet. Needs no key."""
    breach = await _ask(feed(), "/latestbreach", _BREACH)
    return breach.to_breach() if breach else None


async def all_breaches() -> list[FoundBreach]:
    """Return all breaches that the service knows. Needs no key."""
    return [row.to_breach() for row in await _ask(feed(), "/breaches", _BREACHES) or ()]


def account() -> Provider:
    """Return the provider for requests with a key."""
    headers = {"hibp-api-key": settings.PROTECTION_HIBP_KEY, "user-agent": USER_AGENT}
    return Provider("hibp", _url(), settings.PROTECTION_HIBP_PER_MINUTE / 60, headers)


def feed() -> Provider:
    """Return the provider for requests without a key, with its own budget and breaker."""
    return Provider("hibp_feed", _url(), 5.0, {"user-agent": USER_AGENT}, max_bytes=MANY_BYTES)


def _url() -> str:
    return str(settings.PROTECTION_HIBP_URL).rstrip("/")


async def _ask_account(
    endpoint: str, value: str, adapter: TypeAdapter[list[T]], params: Params = ()
) -> list[T]:
    """Return the service's entries for an account; an empty list if there are none."""
    try:
        return await _ask(account(), f"/{endpoint}/{quote(value, safe='')}", adapter, params) or []
    except RequestRefused as error:
        status = error.status
        if status == 400:
            raise ValueNotAccepted("answered 400") from None
        reason = f"answered {status}: check PROTECTION_HIBP_KEY"
        raise RequestRefused(reason, destination=error.destination, status=status) from None


async def _ask(
    provider: Provider, path: str, adapter: TypeAdapter[T], params: Params = ()
) -> T | None:
    """Return the service's document. A 404 of the API means that there is none; a 404 of another
    server is an error."""
    answer = await ask(provider, path, params, is_wrong=lambda each: _error_in(each, adapter))
    if answer.status == 200:
        return adapter.validate_json(answer.body)
    if answer.status != 404:
        raise Unavailable(f"answered {answer.status}", destination=answer.provider)
    if "html" in answer.headers.get("content-type", "") or answer.body.lstrip()[:1] == b"<":
        reason = "answered 404 with an HTML page: check PROTECTION_HIBP_URL"
        raise Unavailable(reason, destination=answer.provider)
    return None


def _error_in(answer: Answer, adapter: TypeAdapter[Any]) -> str:
    """Return why an answer of 200 is wrong, or an empty string."""
    try:
        adapter.validate_json(answer.body)
    except (ValidationError, RecursionError):
        document = answer.json()  # raises Unavailable if it is not JSON
        if isinstance(document, dict) and "statusCode" in document:
            return f"answered 200 with the error {one_line(str(document.get('message', '')))[:100]}"
        return "answered with unexpected JSON"
    return ""


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.ignored_depth = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.ignored_depth += tag in _IGNORED_TAGS
        self.parts.append(" " if tag in ("br", "p", "li") else "")

    def handle_endtag(self, tag: str) -> None:
        self.ignored_depth -= tag in _IGNORED_TAGS and self.ignored_depth > 0

    def handle_data(self, data: str) -> None:
        if not self.ignored_depth:
            self.parts.append(data)


def plain_text(html: str) -> str:
    """Return the text of this HTML on one line, without tags. It is not escaped."""
    parser = _Text()
    parser.feed(html[: 2 * LONGEST])
    parser.close()
    return " ".join(printable("".join(parser.parts)).split())[:LONGEST]

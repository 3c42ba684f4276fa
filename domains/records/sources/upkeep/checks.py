"""Check the fields of a source."""

from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from tailrace.domains.records.sources.fetch import is_local, refusal
from tailrace.domains.records.sources.formats import UnknownFormat, find_format
from tailrace.events.publishing.validation import describe
from tailrace.jobs.models import timing
from tailrace.jobs.models.schedule import LIMITS
from tailrace.net import ssrf_guard


def problems(kind: str, url: str, settings: Any, cron: str) -> dict[str, str]:
    """Return messages about invalid fields, by the field's name."""
    wrong = {}
    try:
        find_format(kind).Settings.model_validate(settings or {})
    except UnknownFormat as error:
        wrong["kind"] = str(error)
    except ValidationError as error:
        wrong["settings"] = describe(error)
    if problem := _url_problem(url):
        wrong["url"] = problem
    if len(cron) > LIMITS["cron"] or timing.problems(None, cron, "UTC", 0):
        wrong["cron"] = f"{cron[:100]!r} is not a cron expression, such as 0 3 * * *"
    return wrong


def _url_problem(url: str) -> str:
    """Return the reason why requests to this URL are not allowed, or an empty string."""
    try:
        if len(url) > ssrf_guard.MAX_URL_LENGTH or not is_local(url):
            ssrf_guard.check_url(url)
        elif any(char <= " " or char == "\x7f" for char in url):
            return "the URL has a space or a control character: encode it, such as %20"
        elif urlsplit(url).username is not None:
            return "the URL has a user name before its host: remove it"
    except ValueError as error:  # such as AddressRefused
        return refusal(str(error))
    return ""

"""Pwned Passwords: how often a password occurs in leaks. Needs no key.

https://haveibeenpwned.com/API/v3#PwnedPasswords
"""

import hashlib
import re

from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from tailrace.domains.protection.services.providers.ask import Answer, Provider, ask
from tailrace.domains.protection.services.providers.hibp import USER_AGENT
from tailrace.jobs.destinations.request_errors import Unavailable

NAME = "pwned_passwords"
PER_SECOND = 10.0
"""The service has no rate limit. This is our own limit for checks by users."""
PATIENCE = 2.0
"""Seconds that a check waits for this limit."""
_LINE = re.compile(r"([0-9A-F]{35}):([0-9]+)")


@sensitive_variables()
async def times_pwned(password: str) -> int:
    """Return how often this password occurs in leaks, or 0.

    The service learns five digits of the hash. Its answer is padded, so that the network does not
    learn how many hashes begin with them. Raises Unavailable, RateLimited or RequestRefused.
    """
    digest = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper()
    answer = await ask(provider(), f"/range/{digest[:5]}", patience=PATIENCE, is_wrong=_error_in)
    if answer.status != 200:
        reason = f"answered {answer.status} for a range of hashes, but every range exists"
        raise Unavailable(reason, destination=NAME)
    return _counts(answer).get(digest[5:], 0)


def provider() -> Provider:
    url = str(settings.PROTECTION_PASSWORDS_URL).rstrip("/")
    return Provider(NAME, url, PER_SECOND, {"user-agent": USER_AGENT, "Add-Padding": "true"})


def _counts(answer: Answer) -> dict[str, int]:
    lines = answer.body.decode("ascii", errors="replace").split()
    matches = [_LINE.fullmatch(line) for line in lines]
    return {match[1]: int(match[2]) for match in matches if match}


def _error_in(answer: Answer) -> str:
    """Return why the answer is not a list of hashes, or an empty string."""
    is_list = len(_counts(answer)) == len(answer.body.split()) > 0
    return "" if is_list else "answered with something other than a list of hashes"

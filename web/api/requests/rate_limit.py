"""The rate limit of the API, and its response headers."""

import math

from django.http import HttpRequest

from tailrace.jobs.destinations.rate_limit import Taken
from tailrace.web.accounts import budget
from tailrace.web.api.problems import too_many_requests


def count_request(request: HttpRequest, user: int, token: int | None, cost: float) -> None:
    """Count a request of a user with a token (None: a session); raise a 429 above the limit.

    The RateLimit headers are stored as `request.rate_limit_headers`.
    """
    try:
        taken = budget.spend(user, token, cost)
    except budget.BudgetExceeded as error:
        _set_headers(request, error.taken)
        raise too_many_requests(str(error), error.wait) from None
    _set_headers(request, taken)


def _set_headers(request: HttpRequest, taken: Taken) -> None:
    bucket = taken.bucket
    reset = math.ceil(taken.wait or (bucket.burst - taken.left) / bucket.rate)
    request.rate_limit_headers = {  # type: ignore[attr-defined]
        "RateLimit-Policy": f'"api";q={bucket.burst:g};w={math.ceil(bucket.burst / bucket.rate)}',
        "RateLimit": f'"api";r={math.floor(taken.left)};t={reset}',
    }

"""The rate limit of the API, per token or user."""

import math

from django.conf import settings
from django.http import HttpRequest

from jobs.destinations.rate_limit import take_token
from jobs.models import Bucket
from web.api.problems import Problem


def count_request(request: HttpRequest, owner: str) -> None:
    """Count a request of a token or user; raise 429 if nothing is left.

    The headers that tell what is left are stored as `request.rate_limit_headers`.
    """
    bucket = f"api:{owner}"
    rate, burst = settings.API_RATE, max(settings.API_BURST, 1)
    wait = take_token(bucket, rate, burst)
    left = 0 if wait else _left(bucket)
    reset = math.ceil(wait or (burst - left) / rate)
    request.rate_limit_headers = {  # type: ignore[attr-defined]
        "RateLimit-Policy": f'"api";q={burst};w={math.ceil(burst / rate)}',
        "RateLimit": f'"api";r={left};t={reset}',
    }
    if wait:
        raise Problem(
            429,
            f"the limit is {rate:g} requests per second with bursts of {burst};"
            f" try again in {wait:.1f} s",
            kind="rate-limited",
            headers={"Retry-After": str(math.ceil(wait))},
        )


def _left(bucket: str) -> int:
    tokens_left = Bucket.objects.filter(name=bucket).values_list("tokens", flat=True).first()
    return max(math.floor(tokens_left or 0), 0)

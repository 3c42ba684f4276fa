"""Rate limits of users, API tokens and client addresses, as token buckets ("budgets"). An ordinary
request costs 1. All tokens and pages of a user share one budget. The admin has a budget of its own,
so that requests with a user's tokens cannot lock the user out of the admin. Requests for pages that
need no account are counted for the client's network."""

from collections.abc import Sequence

from django.conf import settings
from django.http import HttpRequest

from tailrace.jobs.destinations.rate_limit import Bucket, Taken, take_from_all
from tailrace.web.accounts.security.request import client_address, network


class BudgetExceeded(Exception):
    """The budget is too small for the request; after `wait` seconds it suffices."""

    def __init__(self, taken: Taken) -> None:
        bucket = taken.bucket
        costs = f" this one counts as {bucket.cost:g};" if bucket.cost != 1 else ""
        super().__init__(
            f"the limit is {bucket.rate:g} requests per second with bursts of {bucket.burst:g};"
            f"{costs} try again in {taken.wait:.1f} s"
        )
        self.taken, self.wait = taken, taken.wait


def spend(user: int, token: int | None = None, cost: float = 1.0) -> Taken:
    """Take the cost of a request from the budgets of the user and the token (None: a session).

    Returns the budget with the smaller remainder. Raises BudgetExceeded.
    """
    buckets = [_user_bucket(f"api:user:{user}", cost)]
    if token is not None:
        name = f"api:token:{token}"
        buckets.append(Bucket(name, settings.API_RATE, settings.API_BURST, cost))
    return _take(buckets)


def spend_in_admin(user: int) -> Taken:
    """Take one request from the user's budget for the admin. Raises BudgetExceeded."""
    return _take([_user_bucket(f"admin:user:{user}")])


def spend_of_address(request: HttpRequest, kind: str = "web") -> Taken:
    """Take one request of this kind from the budget of the client's IP address, which has one for
    each kind. Raises BudgetExceeded."""
    return spend_of_network(network(client_address(request)), kind)


def spend_of_network(client: str, kind: str) -> Taken:
    """Take one request of this kind from the budget of a network. Raises BudgetExceeded."""
    return _take([_user_bucket(f"{kind}:address:{client}")])


def _user_bucket(name: str, cost: float = 1.0) -> Bucket:
    return Bucket(name, settings.USER_RATE, settings.USER_BURST, cost)


def _take(buckets: Sequence[Bucket]) -> Taken:
    results = take_from_all(buckets)
    longest = max(results, key=lambda taken: taken.wait)
    if longest.wait:
        raise BudgetExceeded(longest)
    return min(results, key=lambda taken: taken.left)

"""Everybody × every address and operation × every method that the table of permissions lacks.

What the table has is in tests/web/test_permissions.py.
"""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.web.test_permissions import PATTERNS, WHO, World, row_of

METHODS = ("POST", "PUT", "PATCH", "DELETE")
WRITES = re.compile(r'^\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?(\w+)', re.IGNORECASE)
MOST = ("anonymous", "owner", "admin")
"""Who may nothing, what is their own, and everything; the others are between them."""
OF_EVERY_REQUEST = {"django_session", "tailrace_web_apitoken", "tailrace_db_tokenbucket"}
"""Sessions, when a token was used last, and budgets."""


@pytest.fixture
def world(db: None) -> World:
    return World()


@pytest.mark.slow
@pytest.mark.parametrize(
    "who", [who if who in MOST else pytest.param(who, marks=pytest.mark.long) for who in WHO]
)
def test_a_method_that_nobody_thought_of_got_a_change_or_an_error(who: str, world: World) -> None:
    client = world.client(who)
    wrong = {}
    for pattern in PATTERNS:
        for method in METHODS:
            if row_of(method, pattern):
                continue
            connection.queries_log.clear()  # it holds 9,000, and what exceeds them is not seen
            with CaptureQueriesContext(connection) as statements:
                answer = world.ask(client, who, method, pattern)
            written = {match[1] for each in statements if (match := WRITES.match(each["sql"]))}
            if answer.status_code >= 500 or written - OF_EVERY_REQUEST:
                wrong[f"{method} {pattern}"] = answer.status_code, written
    assert wrong == {}

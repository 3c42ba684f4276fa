"""Everybody × every address and operation × every method that the table of permissions lacks.

What the table has is in tests/web/test_permissions.py.
"""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.subscriptions.sample_domain import FIRST, assign_role
from tests.web.test_permissions import PATTERNS, WHO, World, row_of

METHODS = ("POST", "PUT", "PATCH", "DELETE")
WRITES = re.compile(r'^\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?(\w+)', re.IGNORECASE)
MOST = ("anonymous", "owner", "admin")
"""Users of the short form: one with no rights, the owner of the objects, one with all rights."""
OF_EVERY_REQUEST = {"django_session", "tailrace_web_apitoken", "tailrace_db_tokenbucket"}
"""Sessions, when a token was used last, and budgets."""


@pytest.fixture(scope="module")
def everybody(rows_of_module: None) -> World:
    return World()


@pytest.fixture
def world(db: None, everybody: World) -> World:
    """The same for all tests of this file: what another test changed is rolled back."""
    assign_role(FIRST, everybody.people["owner"])  # roles of the sandbox end with each test
    return everybody


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "every"),
    [
        *((who, False) for who in MOST),
        *(pytest.param(who, True, marks=pytest.mark.long) for who in WHO),
    ],
)
def test_a_method_that_nobody_thought_of_got_a_change_or_an_error(
    who: str, every: bool, world: World
) -> None:
    """The short form sends one of the methods to each address, another one for each user."""
    client = world.client(who)
    wrong, count = {}, 0
    for number, pattern in enumerate(PATTERNS):
        methods = METHODS if every else (METHODS[(number + MOST.index(who)) % len(METHODS)],)
        for method in methods:
            if row_of(method, pattern):
                continue
            count += 1
            connection.queries_log.clear()  # it holds 9,000, and what exceeds them is not seen
            with CaptureQueriesContext(connection) as statements:
                answer = world.ask(client, who, method, pattern)
            written = {match[1] for each in statements if (match := WRITES.match(each["sql"]))}
            if answer.status_code >= 500 or written - OF_EVERY_REQUEST:
                wrong[f"{method} {pattern}"] = answer.status_code, written
    assert wrong == {}
    assert count > 200

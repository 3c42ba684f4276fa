"""Django's description of the engine's database connection: see `tailrace.db.connections`."""

from collections.abc import Mapping
from typing import Any

from django.db import DEFAULT_DB_ALIAS

STATEMENT_SECONDS = 15
LOCK_SECONDS = 2
SESSION = {
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "lock_timeout": f"{LOCK_SECONDS}s",
    # A plan that was made while a table was empty stays in use when the table has grown. All
    # statements of the engine are meant to use indexes, so other plans are switched off.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",  # before PostgreSQL 18, a plan with a switched-off step counts as expensive
}
"""Settings of the engine's session."""


def engine_database(default: Mapping[str, Any], *, pooled: bool) -> dict[str, Any]:
    """Return the entry of Django's DATABASES for the engine, made from the entry `default`. If
    sessions are `pooled`, the session has no settings, and `connections.prefix` sends them with
    each statement."""
    options = default["OPTIONS"] if pooled else with_session(default["OPTIONS"], SESSION)
    return {
        **default,
        "OPTIONS": dict(options),
        "POOLED": pooled,
        "TEST": {"MIRROR": DEFAULT_DB_ALIAS},
    }


def with_session(options: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    """Return Django's OPTIONS with these session settings added."""
    flags = " ".join(f"-c {name}={value}" for name, value in session.items())
    return {**options, "options": f"{options.get('options', '')} {flags}".strip()}

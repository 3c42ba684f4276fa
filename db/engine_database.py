"""Django's description of the engine's database connection: see `tailrace.db.connections`."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Model

ENGINE = "tailrace"
"""Alias of the engine's connection. It uses the same server and database as `home()`."""


@cache
def home() -> str:
    """Return the alias of the database with events and jobs, whose transactions `publish` and
    `enqueue` join: `default`, or TAILRACE["DATABASE"] of another project."""
    given = getattr(settings, "TAILRACE", None)
    if not isinstance(given, Mapping):  # a check reports another type
        return DEFAULT_DB_ALIAS
    return str(given.get("DATABASE", DEFAULT_DB_ALIAS))


class Router:
    """Keeps events and jobs in the database `home()`, in a project with several."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return home() if model._meta.app_label in LABELS else None

    db_for_write = db_for_read

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool | None:
        ours = {one._meta.app_label, other._meta.app_label} & LABELS
        return True if ours else None

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return db == home() if app_label in LABELS else None


LABELS = {"tailrace_events", "tailrace_jobs"}
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
PREPARE_AFTER = 5
"""A statement is prepared when a session sends it the next time after so many."""


def engine_database(
    default: Mapping[str, Any], *, pooled: bool, alias: str = DEFAULT_DB_ALIAS
) -> dict[str, Any]:
    """Return the entry of Django's DATABASES for the engine, made from the entry of `alias`. If
    sessions are `pooled`, the session has no settings, and `connections.prefix` sends them with
    each statement."""
    options = default["OPTIONS"] if pooled else with_session(default["OPTIONS"], SESSION)
    return {
        **default,
        "OPTIONS": dict(options),
        "POOLED": pooled,
        "TEST": {"MIRROR": alias},
    }


def add_engine_database() -> None:
    """Add the engine's connection to a project whose DATABASES does not have it. Raises
    ImproperlyConfigured if DATABASES has no entry `home()`.

    The connection has the server, the user and the session settings of that entry, but no pool and
    no transaction around requests. Its isolation level is the engine's, READ COMMITTED. If
    DISABLE_SERVER_SIDE_CURSORS is set, as Django's docs require for poolers such as PgBouncer,
    sessions count as pooled.
    """
    if ENGINE in settings.DATABASES:
        return
    if home() != DEFAULT_DB_ALIAS:
        if home() not in settings.DATABASES:
            raise ImproperlyConfigured(
                f"TAILRACE['DATABASE'] is {home()!r}; DATABASES has {', '.join(settings.DATABASES)}"
            )
        router = f"{__name__}.{Router.__name__}"
        settings.DATABASE_ROUTERS = [router, *settings.DATABASE_ROUTERS]
    default = {"OPTIONS": {}, **settings.DATABASES.get(home(), {})}
    pooled = default.get("DISABLE_SERVER_SIDE_CURSORS", False)
    own = engine_database(default, pooled=pooled, alias=home())
    for name in ("pool", "isolation_level"):
        own["OPTIONS"].pop(name, None)
    if not pooled:
        own["OPTIONS"].setdefault("prepare_threshold", PREPARE_AFTER)
    own |= {"ATOMIC_REQUESTS": False, "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}
    settings.DATABASES[ENGINE] = own
    connections.configure_settings(settings.DATABASES)


def with_session(options: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    """Return Django's OPTIONS with these session settings added."""
    flags = " ".join(f"-c {name}={value}" for name, value in session.items())
    return {**options, "options": f"{options.get('options', '')} {flags}".strip()}

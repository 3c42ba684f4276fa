"""explain: why somebody heard of an event, or did not, by each channel, in words.

It asks the audience's own statement, without leaving out whom it leaves out.
"""

from dataclasses import dataclass
from functools import cache

from django.contrib.auth.models import User
from django.db import connection

from events.publish import Recorded
from subscriptions import channels
from subscriptions.audible import allows, receiver_roles
from subscriptions.audience import ASKED, BARRED, MATCHES, RULING, Asked


@dataclass(frozen=True, slots=True)
class Explained:
    """What one channel brought to a person of one event, and why."""

    channel: str
    heard: bool
    why: str
    """In words, e.g. `own row: on for builds.request (as reviewer)`."""
    role: str = ""
    subscription_id: int | None = None
    """The row that decided."""
    group: str = ""
    """The group that hears in the person's place."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A role that the person holds, for one channel, and the row that decides."""

    channel: str
    rank: int
    role: str
    group: str | None
    barred: str | None
    reached: bool
    as_one: bool
    subscription: int | None
    state: str | None
    pattern: str | None
    pace: str | None
    nearness: int | None
    said_of: str | None
    matches: bool | None


# The candidates are the audience's, but for what they leave out, which is a column here.
_CANDIDATES = """
  SELECT p.event, p.type, p.rank, p.role, '{key}' AS channel, p.user_id, p.via, p.barred,
         coalesce({reaches_user}, false) AS reached,
         p.via IS NOT NULL AND ({reaches_group}) IS TRUE AS as_one
  FROM person p
       JOIN offered ON offered.type = p.type AND offered.channel = '{key}'
       JOIN auth_user u ON u.id = p.user_id
       LEFT JOIN subscriptions_groupaddress a ON a.group_id = p.via
"""


@cache
def _sql() -> str:
    candidates = "UNION ALL".join(
        _CANDIDATES.format(key=key, reaches_user=one.reaches_user, reaches_group=one.reaches_group)
        for key, one in channels.everything().items()
    )
    return f"""
{ASKED}, person AS MATERIALIZED (
  SELECT holder.*, happened.type, {BARRED} AS barred
  FROM holder JOIN happened USING (event) JOIN auth_user u ON u.id = holder.user_id
  WHERE u.id = %(user)s
), candidate AS MATERIALIZED (
  {candidates}
), {RULING}
SELECT c.channel, c.rank, c.role, g.name, c.barred, c.reached, c.as_one, subscription, state,
       decided.subject_pattern, pace, nearness, decided.said_of,
       CASE WHEN subscription IS NOT NULL THEN {MATCHES} END
FROM candidate c JOIN happened USING (event)
     LEFT JOIN decided ON (decided.channel, decided.rank) = (c.channel, c.rank)
       AND decided.via IS NOT DISTINCT FROM c.via
     LEFT JOIN auth_group g ON g.id = c.via
ORDER BY c.channel, c.rank, g.name NULLS FIRST
"""


def explain(event: Recorded, user: User) -> list[Explained]:
    """Say for each channel whether the user heard of the event, and why or why not.

    Roles, rows and blocks are taken as they stand now.
    """
    cases = _cases(event, user)
    return [
        _explained(key, event, user, [case for case in cases if case.channel == key])
        for key in channels.everything()
    ]


def _cases(event: Recorded, user: User) -> list[_Case]:
    asked = Asked.of([event])
    if not asked.said:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_sql(), asked.params() | {"user": user.pk})
        return [_Case(*row) for row in cursor.fetchall()]


def _explained(key: str, event: Recorded, user: User, cases: list[_Case]) -> Explained:
    event_type = event.event_type
    if event_type is None or not receiver_roles(event_type):
        return Explained(key, False, f"nobody is told of {event.type}")
    if not allows(event_type, key):
        return Explained(key, False, f"{event.type} does not go out by {key}")
    if not cases:
        roles = ", ".join(map(_words, receiver_roles(event_type)))
        return Explained(key, False, f"{user.username} is none of these: {roles}")
    for case in cases:
        if _hears(case):
            return Explained(
                key, True, f"{_row(case)} (as {_role(case)})", case.role, case.subscription
            )
    case = next((case for case in cases if case.as_one), cases[0])
    return Explained(
        key,
        False,
        "; ".join(dict.fromkeys(_why_not(case, event, user) for case in cases)),
        case.role,
        case.subscription,
        (case.group or "") if case.as_one else "",
    )


def _hears(case: _Case) -> bool:
    return (
        case.barred is None
        and case.reached
        and not case.as_one
        and case.state == "on"
        and bool(case.matches)
    )


_BARRED = {
    "inactive": "{user} is not active",
    "actor": "{user} did it",
    "blocked": "{user} blocks {actor}, who did it",
    "hidden": "{user} may not read of {subject}, which is hidden",
}


def _why_not(case: _Case, event: Recorded, user: User) -> str:
    if case.barred is not None:
        return _BARRED[case.barred].format(
            user=user.username, actor=event.actor, subject=event.subject or event.type
        )
    if case.as_one:
        return f"group {case.group} hears as one, not its members (as {_role(case)})"
    if not case.reached:
        return f"{case.channel} cannot reach {user.username}: {_lacking(case.channel)}"
    if case.subscription is None:
        return f"no row speaks of it (as {_role(case)})"
    if case.state == "off":
        return f"{_row(case)} (as {_role(case)})"
    return f"{_row(case)}, and {event.subject!r} does not match (as {_role(case)})"


def _lacking(key: str) -> str:
    return channels.everything()[key].lacking


def _row(case: _Case) -> str:
    whose = ("own row", f"row of group {case.group}", "default")[case.nearness or 0]
    pattern = f", only {case.pattern}" if case.pattern else ""
    pace = f", {case.pace}" if case.pace not in (None, "instant") else ""
    what = "everything" if case.said_of == "*" else case.said_of
    return f"{whose}: {case.state} for {what}{pattern}{pace}"


def _role(case: _Case) -> str:
    return _words(case.role) + (f" through group {case.group}" if case.group else "")


def _words(role: str) -> str:
    return role.replace("_", " ")

"""audience: who hears of an event, by which channel and why; and what a subscription brings.

Both questions are asked of one definition, the SQL below. What the roles say of the events goes
in as arrays; whatever the number of events and receivers, it is one statement.

1. The roles yield users and groups; inactive users, the event's actor, whoever blocked the actor,
   and whoever may not read of what it is about hear nothing, in a group neither.
2. The row that decides is the user's own, else that of the group through which they hold the role,
   else the default; among these the one for the type itself, else for its nearest family. An off
   row silences; an on row brings what matches its subject pattern.
3. A group that a channel reaches as one (mail: it has an address; web: its inbox) hears once; of
   any other, each member hears.
4. One person hears once per event and channel: by the first role that brings it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import structlog
from django.db import connection

from events.publish import Recorded
from subscriptions import channels, roles
from subscriptions.audible import allows, readers_of, receiver_roles
from subscriptions.lineage import lineage

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Heard:
    """One recipient of an event by one channel: either `user_id` or `group_id` is set."""

    event_id: int
    channel: str
    user_id: int | None
    group_id: int | None
    role: str
    """The reason."""
    pace: str = "instant"
    subscription: int | None = field(default=None, compare=False)
    """The row that decided."""

    @property
    def recipient(self) -> str:
        """The routing key of the recipient's job: `user:5` or `group:3`."""
        return f"group:{self.group_id}" if self.user_id is None else f"user:{self.user_id}"


def audience(event: Recorded) -> list[Heard]:
    """Return who hears of the event, sorted by channel and recipient."""
    return audiences([event])


def audiences(events: Iterable[Recorded]) -> list[Heard]:
    """Return who hears of any of the events: the roles' queries, then one statement."""
    asked = Asked.of(events)
    if not asked.said:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_audience_sql(), asked.params())
        return [Heard(*row) for row in cursor.fetchall()]


def brought_by(
    subscription_id: int, events: Iterable[Recorded], role: str | None = None
) -> set[int]:
    """Return the ids of those events that somebody hears by this very row.

    Whoever knows the row's role says it, so that no other role is asked.
    """
    asked = Asked.of(events, role)
    if not asked.said:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(_brought_sql(), asked.params() | {"subscription": subscription_id})
        return {row[0] for row in cursor.fetchall()}


# said      what the roles of each event's type say: a login or a group's name
# holder    the users behind it, and the group through which they hold the role
# person    those of them whom nothing bars
# candidate who could hear by each channel
# by_default the rows of nobody in particular
# ruling    the rows that speak to a candidate, and how near each stands: nearness 0 is the user's
#           own, 1 the group's, 2 the default
# hearing   the candidates whose nearest row says yes
ASKED = """
WITH happened AS MATERIALIZED (
  SELECT * FROM unnest(%(event)s::bigint[], %(type)s::text[], %(subject)s::text[],
                       %(actor)s::text[], %(hidden)s::bool[])
           AS t (event, type, subject, actor, hidden)
), said AS MATERIALIZED (
  SELECT * FROM unnest(%(said_event)s::bigint[], %(said_rank)s::int[], %(said_role)s::text[],
                       %(said_user)s::text[], %(said_group)s::text[])
           AS t (event, rank, role, login, group_name)
), reader AS MATERIALIZED (
  SELECT * FROM unnest(%(reader_event)s::bigint[], %(reader_user)s::text[],
                       %(reader_group)s::text[]) AS t (event, login, group_name)
), kin AS (
  SELECT * FROM unnest(%(kin_type)s::text[], %(kin_name)s::text[], %(kin_depth)s::int[])
           AS t (type, name, depth)
), offered AS (
  SELECT * FROM unnest(%(offered_type)s::text[], %(offered_channel)s::text[])
           AS t (type, channel)
), holder AS (
  SELECT said.event, said.rank, said.role, u.id AS user_id, NULL::int AS via
  FROM said JOIN auth_user u ON u.username = said.login
  UNION ALL
  SELECT said.event, said.rank, said.role, m.user_id, g.id
  FROM said JOIN auth_group g ON g.name = said.group_name
            JOIN auth_user_groups m ON m.group_id = g.id
)
"""

BARRED = """
  CASE
    WHEN NOT u.is_active THEN 'inactive'
    WHEN u.username = happened.actor THEN 'actor'
    WHEN EXISTS (
      SELECT FROM subscriptions_block b JOIN auth_user enemy ON enemy.id = b.blocked_id
      WHERE b.user_id = u.id AND enemy.username = happened.actor) THEN 'blocked'
    WHEN happened.hidden AND NOT EXISTS (
      SELECT FROM reader r WHERE r.event = happened.event AND (
        r.login = u.username OR r.group_name IN (
          SELECT g.name FROM auth_user_groups m JOIN auth_group g ON g.id = m.group_id
          WHERE m.user_id = u.id))) THEN 'hidden'
  END
"""
"""What keeps the user `u` from hearing of the event `happened`, by whatever channel."""

# The default rows are fetched apart: joined to the candidates directly, the planner reads the
# candidates, which it takes for few, once for each default row there is.
RULING = """
by_default AS MATERIALIZED (
  SELECT kin.type, kin.depth, kin.name AS said_of, s.id AS subscription, s.role, s.channel,
         s.state, s.subject_pattern, s.pace
  FROM kin JOIN subscriptions_eventsubscription s ON s.event_type = kin.name
  WHERE s.user_id IS NULL AND s.group_id IS NULL
), ruling AS (
  SELECT c.*, kin.depth, kin.name AS said_of, s.id AS subscription, s.state, s.subject_pattern,
         s.pace, 0 AS nearness
  FROM candidate c JOIN kin ON kin.type = c.type
       JOIN subscriptions_eventsubscription s ON s.event_type = kin.name AND s.role = c.role
            AND s.channel = c.channel AND s.user_id = c.user_id
  UNION ALL
  SELECT c.*, kin.depth, kin.name, s.id, s.state, s.subject_pattern, s.pace, 1
  FROM candidate c JOIN kin ON kin.type = c.type
       JOIN subscriptions_eventsubscription s ON s.event_type = kin.name AND s.role = c.role
            AND s.channel = c.channel AND s.group_id = c.via
  UNION ALL
  SELECT c.*, d.depth, d.said_of, d.subscription, d.state, d.subject_pattern, d.pace, 2
  FROM candidate c JOIN by_default d ON d.type = c.type AND d.role = c.role
       AND d.channel = c.channel
), decided AS (
  SELECT DISTINCT ON (event, channel, rank, user_id, via) *
  FROM ruling
  ORDER BY event, channel, rank, user_id, via, nearness, depth
)
"""

# Only the star is special in a pattern; what LIKE holds for special is escaped.
_PATTERN = (
    r"replace(replace(replace(replace(decided.subject_pattern, '\', '\\'), '%%', '\%%'),"
    r" '_', '\_'), '*', '%%')"
)
MATCHES = f"(decided.subject_pattern = '' OR happened.subject LIKE {_PATTERN})"

_HEARING = f"""
{ASKED}, person AS MATERIALIZED (
  SELECT holder.*, happened.type
  FROM holder JOIN happened USING (event) JOIN auth_user u ON u.id = holder.user_id
  WHERE ({BARRED}) IS NULL
), candidate AS MATERIALIZED (
  {{candidates}}
), {RULING}, hearing AS (
  SELECT decided.*, CASE WHEN user_id IS NULL THEN via END AS group_id
  FROM decided JOIN happened USING (event)
  WHERE state = 'on' AND {MATCHES}
)
"""

# A member does not hear by a channel that reaches the group as one.
_CANDIDATES = """
  SELECT p.event, p.type, p.rank, p.role, '{key}' AS channel, p.user_id, p.via
  FROM person p
       JOIN offered ON offered.type = p.type AND offered.channel = '{key}'
       JOIN auth_user u ON u.id = p.user_id
       LEFT JOIN subscriptions_groupaddress a ON a.group_id = p.via
  WHERE ({reaches_user}) AND (p.via IS NULL OR ({reaches_group}) IS NOT TRUE)
  UNION ALL
  SELECT said.event, happened.type, said.rank, said.role, '{key}', NULL, g.id
  FROM said JOIN happened USING (event)
       JOIN offered ON offered.type = happened.type AND offered.channel = '{key}'
       JOIN auth_group g ON g.name = said.group_name
       LEFT JOIN subscriptions_groupaddress a ON a.group_id = g.id
  WHERE ({reaches_group}) AND (NOT happened.hidden OR EXISTS (
    SELECT FROM reader r WHERE r.event = happened.event AND r.group_name = g.name))
"""


@cache
def _hearing_sql() -> str:
    candidates = "UNION ALL".join(
        _CANDIDATES.format(key=key, reaches_user=one.reaches_user, reaches_group=one.reaches_group)
        for key, one in channels.everything().items()
    )
    return _HEARING.format(candidates=candidates)


@cache
def _audience_sql() -> str:
    return f"""{_hearing_sql()}
SELECT DISTINCT ON (event, channel, user_id, group_id)
  event, channel, user_id, group_id, role, pace, subscription
FROM hearing ORDER BY event, channel, user_id, group_id, rank
"""


@cache
def _brought_sql() -> str:
    return (
        f"{_hearing_sql()}SELECT DISTINCT event FROM hearing WHERE subscription = %(subscription)s"
    )


@dataclass(slots=True)
class Asked:
    """What the statement is asked about, column by column."""

    happened: Sequence[tuple[int, str, str, str, bool]]
    said: Sequence[tuple[int, int, str, str | None, str | None]]
    reader: Sequence[tuple[int, str | None, str | None]]
    kin: Sequence[tuple[str, str, int]]
    offered: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, events: Iterable[Recorded], only_role: str | None = None) -> "Asked":
        known = [event for event in events if event.event_type is not None]
        readers = {event.id: readers_of(event) for event in known}
        types = {event.event_type for event in known if event.event_type is not None}
        return cls(
            happened=[
                (event.id, event.type, event.subject, event.actor, readers[event.id] is not None)
                for event in known
            ],
            said=[one for event in known for one in _said(event, only_role)],
            reader=[
                one
                for id, those in readers.items()
                if those is not None
                for one in (
                    *((id, login, None) for login in those.users),
                    *((id, None, group) for group in those.groups),
                )
            ],
            kin=[
                (type.name, name, depth)
                for type in types
                for depth, name in enumerate(lineage(type))
            ],
            offered=[
                (type.name, key)
                for type in types
                for key in channels.everything()
                if allows(type, key)
            ],
        )

    def params(self) -> dict[str, Any]:
        return {
            **_columns("event type subject actor hidden", self.happened),
            **_columns("said_event said_rank said_role said_user said_group", self.said),
            **_columns("reader_event reader_user reader_group", self.reader),
            **_columns("kin_type kin_name kin_depth", self.kin),
            **_columns("offered_type offered_channel", self.offered),
        }


def _columns(names: str, rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(names.split())}


def _said(
    event: Recorded, only_role: str | None
) -> list[tuple[int, int, str, str | None, str | None]]:
    """Ask the roles of the event's type, or only one; what a role raises goes to the caller."""
    found: list[tuple[int, int, str, str | None, str | None]] = []
    names = receiver_roles(event.event_type) if event.event_type else []
    for rank, name in enumerate(names):
        if only_role not in (None, name):
            continue
        role = roles.find(name)
        if role is None:
            log.error("audience.unknown_role", role=name, event_type=event.type)
            continue
        receivers = role(event)
        found += [(event.id, rank, name, login, None) for login in receivers.users]
        found += [(event.id, rank, name, None, group) for group in receivers.groups]
    return found

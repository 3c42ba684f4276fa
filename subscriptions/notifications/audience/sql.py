"""The statements that find recipients: named parts, which the end of this file combines.

1. The roles return users and groups. Inactive users, the event's actor, users who blocked the
   actor, and users without read access to the subject are excluded, also as members of a group.
2. The deciding row is the user's own subscription, else the subscription of the group through
   which they hold the role, else the default; among these, the row for the type itself, else for
   its nearest family. If the deciding row is off, the recipient is not notified; if it is on, the
   event's subject must match its pattern.
3. If a channel reaches a group as one recipient (mail: the group has an address; web: its inbox),
   the group is notified once. Otherwise each member is notified.
4. A recipient is notified once per event and channel, in the first role that applies.
"""

from functools import cache

from tailrace.events.catalog.topics import EVERYTHING
from tailrace.subscriptions.notifications.audience.facts import COLUMNS
from tailrace.subscriptions.types.channel import all_channels


def _facts() -> list[str]:
    """Return the tables of facts as common table expressions, built from array parameters."""
    return [
        f"{table} AS MATERIALIZED (SELECT * FROM unnest("
        + ", ".join(
            f"%({table}_{name})s::{kind}[]" for name, kind in map(str.split, columns.split(", "))
        )
        + f") AS t ({', '.join(column.split()[0] for column in columns.split(', '))}))"
        for table, columns in COLUMNS.items()
    ]


# The users who hold a role, and the group through which they hold it, if any.
_HOLDER = """holder AS (
  SELECT r.event, r.rank, r.role, u.id AS user_id, NULL::int AS group_of_user
  FROM receiver r JOIN auth_user u ON u.username = r.login
  UNION ALL
  SELECT r.event, r.rank, r.role, m.user_id, g.id
  FROM receiver r JOIN auth_group g ON g.name = r.group_name
                  JOIN auth_user_groups m ON m.group_id = g.id
)"""

# The reason why the user `u` is not notified of the event by any channel, or NULL.
_EXCLUDED = """CASE
    WHEN NOT u.is_active THEN 'inactive'
    WHEN u.username = published.actor THEN 'actor'
    WHEN EXISTS (
      SELECT FROM tailrace_subscriptions_block b JOIN auth_user blocked ON blocked.id = b.blocked_id
      WHERE b.user_id = u.id AND blocked.username = published.actor) THEN 'blocked'
    WHEN published.hidden AND NOT EXISTS (
      SELECT FROM reader r WHERE r.event = published.event AND (
        r.login = u.username OR r.group_name IN (
          SELECT g.name FROM auth_user_groups m JOIN auth_group g ON g.id = m.group_id
          WHERE m.user_id = u.id))) THEN 'hidden'
  END"""

_PERSON = f"""person AS MATERIALIZED (
  SELECT holder.*, published.type
  FROM holder JOIN published USING (event) JOIN auth_user u ON u.id = holder.user_id
  WHERE ({_EXCLUDED}) IS NULL
)"""

_ONE_PERSON = f"""person AS MATERIALIZED (
  SELECT holder.*, published.type, {_EXCLUDED} AS excluded
  FROM holder JOIN published USING (event) JOIN auth_user u ON u.id = holder.user_id
  WHERE u.id = %(user)s
)"""

# The possible recipients of one channel. Members of a group are not among them if the channel
# reaches the group as one recipient.
_CANDIDATE = """
  SELECT p.event, p.type, p.rank, p.role, '{key}' AS channel, p.user_id, p.group_of_user
  FROM person p
       JOIN offered ON offered.type = p.type AND offered.channel = '{key}'
       JOIN auth_user u ON u.id = p.user_id
       LEFT JOIN tailrace_subscriptions_groupaddress a ON a.group_id = p.group_of_user
  WHERE ({reaches_user}) AND (p.group_of_user IS NULL OR ({reaches_group}) IS NOT TRUE)
  UNION ALL
  SELECT r.event, published.type, r.rank, r.role, '{key}', NULL, g.id
  FROM receiver r JOIN published USING (event)
       JOIN offered ON offered.type = published.type AND offered.channel = '{key}'
       JOIN auth_group g ON g.name = r.group_name
       LEFT JOIN tailrace_subscriptions_groupaddress a ON a.group_id = g.id
  WHERE ({reaches_group}) AND (NOT published.hidden OR EXISTS (
    SELECT FROM reader WHERE reader.event = published.event AND reader.group_name = g.name))
"""

# The same for an explanation: the reasons for an exclusion are columns instead of conditions.
_CANDIDATE_EXPLAINED = """
  SELECT p.event, p.type, p.rank, p.role, '{key}' AS channel, p.user_id, p.group_of_user,
         p.excluded, coalesce({reaches_user}, false) AS reached,
         p.group_of_user IS NOT NULL AND ({reaches_group}) IS TRUE AS group_notified
  FROM person p
       JOIN offered ON offered.type = p.type AND offered.channel = '{key}'
       JOIN auth_user u ON u.id = p.user_id
       LEFT JOIN tailrace_subscriptions_groupaddress a ON a.group_id = p.group_of_user
"""


def _candidate(channel_template: str) -> str:
    channels = (
        channel_template.format(
            key=key, reaches_user=channel.reaches_user, reaches_group=channel.reaches_group
        )
        for key, channel in all_channels().items()
    )
    return f"candidate AS MATERIALIZED ({'UNION ALL'.join(channels)})"


_ROW = "s.id AS subscription_id, s.state, s.subject_pattern, s.pace"

# The default rows are fetched separately. In a direct join the planner underestimates the number of
# candidates, and scans them once for each default row.
_DEFAULT_ROW = f"""default_row AS MATERIALIZED (
  SELECT topic.type, topic.depth, topic.name AS topic, s.role, s.channel, {_ROW}
  FROM topic JOIN tailrace_subscriptions_eventsubscription s ON s.event_type = topic.name
  WHERE s.user_id IS NULL AND s.group_id IS NULL
)"""

# The subscriptions that apply to a candidate. Owner 0 is the user, 1 the group, 2 the default.
_APPLICABLE_ROW = f"""applicable_row AS (
  SELECT c.*, topic.depth, topic.name AS topic, {_ROW}, 0 AS owner
  FROM candidate c JOIN topic ON topic.type = c.type
       JOIN tailrace_subscriptions_eventsubscription s ON s.event_type = topic.name
            AND s.role = c.role
            AND s.channel = c.channel AND s.user_id = c.user_id
  UNION ALL
  SELECT c.*, topic.depth, topic.name, {_ROW}, 1
  FROM candidate c JOIN topic ON topic.type = c.type
       JOIN tailrace_subscriptions_eventsubscription s ON s.event_type = topic.name
            AND s.role = c.role
            AND s.channel = c.channel AND s.group_id = c.group_of_user
  UNION ALL
  SELECT c.*, d.depth, d.topic, d.subscription_id, d.state, d.subject_pattern, d.pace, 2
  FROM candidate c JOIN default_row d ON d.type = c.type AND d.role = c.role
       AND d.channel = c.channel
)"""

_DECIDING_ROW = """deciding_row AS (
  SELECT DISTINCT ON (event, channel, rank, user_id, group_of_user) *
  FROM applicable_row
  ORDER BY event, channel, rank, user_id, group_of_user, owner, depth
)"""

# Only `*` is special in a pattern; the special characters of LIKE are escaped.
_MATCHES = r"""(deciding_row.subject_pattern = '' OR published.subject LIKE replace(replace(replace(
    replace(deciding_row.subject_pattern, '\', '\\'), '%%', '\%%'), '_', '\_'), '*', '%%'))"""

_NOTIFIED = f"""notified AS (
  SELECT deciding_row.*, CASE WHEN user_id IS NULL THEN group_of_user END AS group_id
  FROM deciding_row JOIN published USING (event)
  WHERE state = 'on' AND {_MATCHES}
)"""

_DECISION = [_DEFAULT_ROW, _APPLICABLE_ROW, _DECIDING_ROW]


def _notified() -> str:
    parts = [*_facts(), _HOLDER, _PERSON, _candidate(_CANDIDATE), *_DECISION, _NOTIFIED]
    return "WITH " + ",\n".join(parts)


@cache
def recipients() -> str:
    """Return the statement for the recipients, with the fields of Recipient as columns."""
    return f"""{_notified()}
SELECT DISTINCT ON (event, channel, user_id, group_id)
  event, channel, user_id, group_id, role, pace, subscription_id,
  topic <> '{EVERYTHING}' AND owner = CASE WHEN user_id IS NULL THEN 1 ELSE 0 END
FROM notified ORDER BY event, channel, user_id, group_id, rank
"""


@cache
def events_of_subscription() -> str:
    """Return the statement for the events that have a recipient because of a subscription."""
    return f"{_notified()} SELECT DISTINCT event FROM notified WHERE subscription_id = %(id)s"


@cache
def explanation() -> str:
    """Return the statement that explains: one row per channel, role and group of one user."""
    candidate = _candidate(_CANDIDATE_EXPLAINED)
    parts = [*_facts(), _HOLDER, _ONE_PERSON, candidate, *_DECISION]
    return f"""WITH {",".join(parts)}
SELECT c.channel, c.role, g.name, c.excluded, c.reached, c.group_notified, subscription_id, state,
       deciding_row.subject_pattern, pace, owner, deciding_row.topic,
       CASE WHEN subscription_id IS NOT NULL THEN {_MATCHES} END
FROM candidate c JOIN published USING (event)
     LEFT JOIN deciding_row ON (deciding_row.channel, deciding_row.rank) = (c.channel, c.rank)
       AND deciding_row.group_of_user IS NOT DISTINCT FROM c.group_of_user
     LEFT JOIN auth_group g ON g.id = c.group_of_user
ORDER BY c.channel, c.rank, g.name NULLS FIRST
"""

"""The statements that claim jobs, and the statements that preview them: plain.sql, fair.sql and
ordered.sql, which end with take.sql.

Each file has three sections: the WITH queries that choose jobs, the end of a claim, and the end of
a preview. So a claim and its preview have the same conditions; the preview locks no rows. The names
in braces are the parts whose values differ; their values are here and in `kinds`.

A statement scans an index only as far as it needs, so that its cost does not depend on the number
of waiting jobs. `column = ANY(ARRAY[value])` and `(column || '')` are explained in `db.sql.plans`,
the scan for the newest `slice` of a queue in `waking.activity`.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from tailrace.db import clock
from tailrace.db.sql.token_bucket import tokens_at
from tailrace.events.publish import RECORDED
from tailrace.jobs.handler import LOWEST_PRIORITY

# Conditions of these statements, for other queries.
PRIORITIES = ", ".join(f"({number})" for number in range(LOWEST_PRIORITY + 1))
PENDING = "state = 'pending'"
DUE = f"due_at <= {clock.NOW}"
IN_LANE = "lane <> ''"
"""Jobs without a lane are not part of a walk along the lanes."""
OPEN = "q.paused_at IS NULL"
RUNNING = "state = 'running' AND handler = %(handler)s"
_THIS_LANE = f"handler = %(handler)s AND lane BETWEEN lanes.lane AND lanes.lane AND {IN_LANE}"
LANE_BUSY = f"state = 'running' AND {_THIS_LANE} ORDER BY lane LIMIT 1"
LANE_HEAD = f"{PENDING} AND {_THIS_LANE} ORDER BY lane, id LIMIT 1"
"""The head of an ordered lane: its oldest pending job, due or not."""
# Each priority is counted separately, along the index of the due jobs.
DUE_JOBS = f"""(SELECT count(*) FROM (
  SELECT 1 FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
    SELECT 1 FROM tailrace_jobs_live WHERE handler = q.name AND state = 'pending'
      AND priority = p.priority AND due_at <= {clock.NOW} LIMIT %(cap)s) job
  LIMIT %(cap)s) capped)"""
"""The number of due jobs of the queue `q`, up to %(cap)s."""
TOKENS = tokens_at(
    clock.NOW, tokens="tokens", filled_at="tokens_at", capacity="greatest(%(rate)s, 1)"
)
"""The tokens in a queue's bucket now; a claim takes whole tokens."""

LOCK = "FOR UPDATE SKIP LOCKED"
NO_LOCK = "OFFSET 0"
"""In place of LOCK in a preview. As a lock does, it keeps the planner from merging subqueries."""

DUE_ROWS = 200
"""Each claim in lanes reads up to this many due jobs. Reading one costs a tenth of one step of a
walk."""
STEPS = "(%(limit)s + 300)::int"
"""Maximum number of lanes in a walk. A walk that reaches it has mostly found no due jobs."""


def statements(file: str, **parts: str) -> tuple[str, str]:
    """Return the claim and the preview of a file beside this module, with these parts."""
    choice, claim, preview = re.split("^(?=-- The end of a )", _read(file), flags=re.MULTILINE)
    return _filled(choice + claim, LOCK, parts), _filled(choice + preview, NO_LOCK, parts)


def _filled(text: str, lock: str, parts: Mapping[str, str]) -> str:
    values = {"now": clock.NOW, "due_rows": DUE_ROWS, "steps": STEPS, "take": _TAKE, "lock": lock}
    filled = {name: part.format(**values) for name, part in parts.items()}
    return _without_comments(text).format(**values, **filled)


def _read(file: str) -> str:
    return Path(__file__).with_name(file).read_text(encoding="utf-8")


def _without_comments(text: str) -> str:
    return re.sub("^ *--.*\n|^\n", "", text, flags=re.MULTILINE)


_TAKE = _without_comments(_read("take.sql")).format(now=clock.NOW, event_columns=RECORDED)

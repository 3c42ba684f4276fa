"""Record handlers whose calls end their process, in tailrace_jobs_pulse: the verdict reads it."""

import json
from collections.abc import Mapping

from tailrace.db import clock
from tailrace.db.query import execute

FORGOTTEN_SECONDS = 3600
"""After this long without another loss, the count begins again."""
NAMED_FROM = 2
"""The first loss may have another reason; from the second one on, the verdict names the handler."""

_RECORD = f"""
INSERT INTO tailrace_jobs_pulse AS p (name, at, queues, by, facts)
SELECT 'loss:' || handler, {clock.NOW}, '[]', '', facts
FROM unnest(%(handlers)s::text[], %(facts)s::jsonb[]) AS lost (handler, facts) ORDER BY handler
ON CONFLICT (name) DO UPDATE SET at = excluded.at, facts = excluded.facts
  || CASE WHEN p.at < {clock.NOW} - interval '{FORGOTTEN_SECONDS} seconds' THEN '{{}}'::jsonb
     ELSE jsonb_build_object('times', (p.facts ->> 'times')::int + 1, 'since', p.facts -> 'since')
     END
"""


def record(jobs: Mapping[str, int], lost: str, *, at_once: bool = True) -> None:
    """Count one more loss of these handlers, each with the job that was lost last; `lost` says how.
    With `at_once` the first one counts as NAMED_FROM: the same job was lost before."""
    if not jobs:
        return
    facts = {"times": NAMED_FROM if at_once else 1, "lost": lost, "since": clock.now().isoformat()}
    each = [json.dumps(facts | {"job": id}) for id in jobs.values()]
    execute(_RECORD, handlers=list(jobs), facts=each)

"""The cost of publishing, beside a bare INSERT of the same row and four delay_on_commit.

The sides take turns in one process; no worker runs, so the queues are awake after the first
event and the waker finds nothing to send. `delay_on_commit` sends four messages each time.
"""

import json
from collections.abc import Sequence

from bench.report import Row, Target, find, percentile
from bench.servers import Servers

TITLE = "Publishing"
MEDIAN = "one per transaction, median"


def run(servers: Servers, short: bool) -> list[Row]:
    """Both ways, on an empty database."""
    env = servers.environment(servers.database("publish"), servers.broker())
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    rows = []
    rounds = 200 if short else 2000
    for side, times in json.loads(
        servers.run(env, "-m", "bench.jobs.inside.in_process", "publish_one", str(rounds))
    ).items():
        note = f"p99 {percentile(times, 0.99):.2f} ms, {1000 / (sum(times) / len(times)):,.0f}/s"
        rows.append(Row("publish", side, MEDIAN, percentile(times, 0.5), "ms", note))
    for side, times in json.loads(
        servers.run(
            env, "-m", "bench.jobs.inside.in_process", "publish_bulk", "5" if short else "20"
        )
    ).items():
        rate = 1000 * len(times) / (sum(times) / 1000)
        rows.append(Row("publish", side, "1,000 per transaction", rate, "events/s"))
    servers.drop()
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """One event with four jobs is at most two bare INSERTs and half of four delay_on_commit."""
    ours = find(rows, "publish, 4 jobs", MEDIAN)
    bare = find(rows, "bare INSERT in atomic()", MEDIAN)
    auto = find(rows, "bare INSERT, autocommit", MEDIAN)
    delayed = find(rows, "INSERT and 4 delay_on_commit", MEDIAN)
    bulk = find(rows, "publish, 4 jobs each", "1,000 per transaction")
    return [
        Target("publish against a bare INSERT in atomic()", ours / bare, 2, "less"),
        Target("publish against a bare INSERT, autocommit", ours / auto, 2, "less"),
        Target("publish against four delay_on_commit", ours / delayed, 0.5, "less"),
        Target("bulk publish, events/s with 4 jobs each", bulk, 8000),
    ]

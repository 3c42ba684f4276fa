"""The chain of records: begin PORT | wait COUNT. Prints JSON."""

import json
import sys
import time
from typing import Any

import django


def begin(port: int) -> None:
    """Request a source that is read from this port."""
    from tailrace.domains.records.models import Source
    from tailrace.domains.records.sources.requests import request_pull

    url = f"http://127.0.0.1:{port}/oai"
    request_pull(Source.objects.create(name="bench", kind="oai_pmh", url=url).pk)


# A row per queue and minute: a count of the jobs would take a part of what is measured.
_DONE = """
SELECT coalesce(sum(completed), 0) FROM tailrace_jobs_throughput
WHERE queue = 'records.index_record'
"""


def wait(count: int) -> dict[str, Any]:
    """Wait until all records are in all indexes; return the seconds since the pull began, and what
    the indexes hold."""
    from tailrace.db.query import query
    from tailrace.domains.records.search.indexing.backends import backends

    until = time.monotonic() + 600
    while query(_DONE)[0][0] < count * len(backends()) and time.monotonic() < until:
        time.sleep(0.5)
    [(seconds,)] = query(
        "SELECT extract(epoch FROM max(finished_at) - min(started_at))::float8"
        " FROM tailrace_jobs_job WHERE handler LIKE 'records.%%'"
    )
    [stored] = query(
        "SELECT (SELECT count(*) FROM tailrace_records_record),"
        " (SELECT count(*) FROM tailrace_records_keywordentry),"
        " (SELECT count(*) FROM tailrace_records_vectorentry),"
        " (SELECT count(*) FROM tailrace_jobs_job WHERE handler LIKE 'records.%%'"
        " AND state <> 'completed')"
    )
    return {"seconds": seconds, "stored": list(stored)}


if __name__ == "__main__":
    django.setup()
    command, number = sys.argv[1:]
    print(json.dumps({"begin": begin, "wait": wait}[command](int(number))))

"""The chain of records: begin PORT | wait COUNT SECONDS. Prints JSON."""

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


class Depositors:
    """Two users who deposit a record every `seconds`, and search for it until it is found. The word
    that they search for is in no other record. With 0 seconds they deposit none."""

    def __init__(self, seconds: int) -> None:
        from django.contrib.auth.models import User

        self.seconds, self.made = seconds, 0
        self.users = [User.objects.create(username=f"bench{number}") for number in range(2)]
        self.waits: list[float] = []
        self._made_at: dict[str, float] = {}

    def step(self) -> None:
        now = time.monotonic()
        if self.seconds and now >= max(self._made_at.values(), default=0) + self.seconds:
            self._deposit(f"deposit{self.made}x")
        self._search()

    def _deposit(self, word: str) -> None:
        from tailrace.domains.records.depositions.receive import receive

        user = self.users[self.made % len(self.users)]
        receive(user, {"title": f"Own {word}", "creators": ["Novak, Ana"], "language": "en"}, [])
        self.made += 1
        self._made_at[word] = time.monotonic()

    def _search(self) -> None:
        from tailrace.domains.records.search.searching import search

        waiting = list(self._made_at)[len(self.waits) :]
        for word in waiting[:1]:
            if search(self.users[0], word, "keyword").hits:
                self.waits.append(time.monotonic() - self._made_at[word])


# A row per queue and minute: a count of the jobs would take a part of what is measured.
_DONE = """
SELECT coalesce(sum(completed), 0) FROM tailrace_jobs_throughput
WHERE queue = 'records.index_record'
"""
_SECONDS = """
SELECT extract(epoch FROM max(j.finished_at) - min(j.started_at))::float8
FROM tailrace_jobs_job j JOIN tailrace_events_event e ON e.id = j.event_id
WHERE j.handler LIKE 'records.%%' AND e.payload ->> 'account' IS NULL
"""
_STORED = """
SELECT (SELECT count(*) FROM tailrace_records_record),
  (SELECT count(*) FROM tailrace_records_keywordentry),
  (SELECT count(*) FROM tailrace_records_vectorentry),
  (SELECT count(*) FROM tailrace_jobs_job WHERE handler LIKE 'records.%%' AND state <> 'completed')
"""


def wait(count: int, seconds: int) -> dict[str, Any]:
    """Wait until all records are in all indexes, with a deposit every `seconds` meanwhile. See
    `bench.domains.records.harvest`."""
    from tailrace.db.query import query
    from tailrace.domains.records.search.indexing.backends import backends

    users = Depositors(seconds)
    until, next_count = time.monotonic() + 3600, 0.0
    while time.monotonic() < until:
        users.step()
        if time.monotonic() >= next_count:
            next_count = time.monotonic() + 0.5
            done = query(_DONE)[0][0] // len(backends())
            if done >= count:  # the deposits are among them
                users.seconds = 0
            if done >= count + users.made and len(users.waits) == users.made:
                break
        time.sleep(0.2)
    total = count + users.made
    [(took,)], [stored] = query(_SECONDS), query(_STORED)
    return {
        "seconds": took,
        "waits": users.waits,
        "stored": list(stored),
        "complete": list(stored) == [total, total, total, 0],
    }


if __name__ == "__main__":
    django.setup()
    command, *numbers = sys.argv[1:]
    print(json.dumps({"begin": begin, "wait": wait}[command](*map(int, numbers))))

"""The jobs that events must have. As a program: print those of the events of builds as JSON."""

import json
import sys


def expected(number: int) -> list[str]:
    """Return the handlers of a client's event by its number, independent of their code."""
    some = {0: "slow", 1: "flaky", 2: "ring", 3: "split", 4: "leaving", 7: "ring"}
    always = ["one", "together", "fair", "ordered"]
    return [*always, some[number % 10]] if number % 10 in some else always


def caused(number: int) -> list[str]:
    """Return the handlers whose jobs are enqueued by one of those."""
    return ["widened", "broken"] if number % 10 == 3 else []


def main() -> None:
    """Print [event, handler, routing key] of all jobs that have no unique key."""
    import django

    django.setup()
    from django.db import connection

    from tailrace.events.publish import RECORDED, Recorded
    from tailrace.jobs.engine.inserting.fan_out import jobs_for

    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {RECORDED} FROM tailrace_events_event e WHERE source LIKE 'obs:chaos:%'"
        )
        events = [Recorded.from_row(row) for row in cursor.fetchall()]
    result = [
        (job.event_id, job.handler, job.routing_key)
        for event in events
        for job in jobs_for(event)
        if job.unique_key is None
    ]
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()

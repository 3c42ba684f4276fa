"""What events owe. As a program: what those of builds owe, by the fan-out's own words, as JSON."""

import json
import sys


def hears(number: int) -> list[str]:
    """The handlers that hear of what a client said, by its number. Written apart from theirs."""
    some = {0: "slow", 1: "flaky", 2: "ring", 3: "split", 4: "leaving", 7: "ring"}
    always = ["one", "together", "fair", "ordered"]
    return [*always, some[number % 10]] if number % 10 in some else always


def caused(number: int) -> list[str]:
    """The handlers that are owed a job by one of those."""
    return ["widened", "broken"] if number % 10 == 3 else []


def main() -> None:
    """Print [event, handler, routing key] of all that is owed, but for what a unique key may merge
    into another event's."""
    import django

    django.setup()
    from django.db import connection

    from events.publish import RECORDED, Recorded
    from jobs.fan_out import owed

    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {RECORDED} FROM events_event e WHERE source LIKE 'obs:chaos:%'")
        events = [Recorded.from_row(row) for row in cursor.fetchall()]
    found = [
        (job.event_id, job.handler, job.routing_key)
        for event in events
        for job in owed(event)
        if job.unique_key is None
    ]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()

"""What the tests of removals share: brokers in a file, a person, and workers of both queues."""

from datetime import date
from pathlib import Path
from typing import Any

import yaml
from django.contrib.auth.models import User

from tailrace.domains.protection.models import RemovalRequest
from tailrace.domains.protection.services.removals import decisions
from tailrace.domains.protection.services.removals.moves import MAIL_QUEUE, QUEUE
from tailrace.domains.protection.services.removals.person import Person
from tests.servers.broker import NOBODY, DataBroker

QUEUES = (QUEUE, MAIL_QUEUE)
ANN = Person(name="Ann Example", email="ann@example.org", city="Berlin")
HOUR, DAY = 3600.0, 86_400.0


def form_entry(broker: DataBroker, key: str = "people", **more: Any) -> dict[str, Any]:
    """Return the entry of a broker with a form and a search."""
    return {
        "key": key,
        "names": ["People Search"],
        "url": broker.url,
        "removal_url": f"{broker.url}/opt-out",
        "method": "form",
        "fields": {"full_name": "{name}", "email": "{email}", "agree": "yes"},
        "accepted_text": "your request has been received",
        "verification": {
            "listing_url": f"{broker.url}/search?name={{name}}",
            "not_listed_text": NOBODY,
        },
        "per_minute": 600,
        "working_as_of": date(2026, 11, 1),
        **more,
    }


def mail_entry(broker: DataBroker, **more: Any) -> dict[str, Any]:
    """Return the entry of a broker that takes mails, and has a page for each person."""
    return form_entry(broker, "records") | {
        "names": ["Public Records"],
        "method": "mail",
        "mail": "privacy@records.test",
        "fields": {"Full name": "{name}", "Place": "{city}"},
        "verification": {
            "listing_url": f"{broker.url}/people/{{name}}",
            "not_listed_status": [404],
        },
        **more,
    }


def manual_entry(broker: DataBroker) -> dict[str, Any]:
    return form_entry(broker, "letters") | {
        "names": ["Mailing Lists"],
        "method": "manual",
        "instructions": "Send them a letter.",
        "verification": None,
    }


def write_brokers(path: Path, *entries: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(list(entries)))


def started(user: User, key: str = "people", person: Person = ANN) -> RemovalRequest:
    """Start a request; return it as it is stored."""
    [row] = decisions.start(user, [key], person)
    return now(row)


def now(row: RemovalRequest) -> RemovalRequest:
    return RemovalRequest.objects.get(pk=row.pk)


def history(row: RemovalRequest) -> list[str]:
    """Return the states that the request came into, in their order."""
    return list(row.changes.order_by("pk").values_list("new_state", flat=True))

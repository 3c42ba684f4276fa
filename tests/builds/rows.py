"""One row of each kind of this domain, for tests of its lists."""

from django.contrib.auth.models import User

from tailrace.db import clock
from tailrace.domains.builds.models import (
    Binary,
    Package,
    PackageLink,
    Project,
    ProjectLogEntry,
    RoleHolder,
    TokenHolder,
    UnreadChange,
    Watch,
)
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.destinations import breaker


def one_of_each() -> None:
    now = clock.now()
    payload = {"project": "home:alice", "package": "hello", "rev": "1"}
    (event,) = publish([NewEvent("builds.commit", payload)])
    Project.objects.create(backend="main", name="home:alice")
    package = Package.objects.create(backend="main", project="home:alice", name="hello")
    PackageLink.objects.create(package=package, project="p", name="q")
    RoleHolder.objects.create(backend="main", project="p", role="reader", user="bob")
    Binary.objects.create(
        backend="main", project="p", repository="r", name="b", operation="added", released_at=now
    )
    ProjectLogEntry.objects.create(
        event_id=event.id, project="home:alice", type=event.type, occurred_at=now
    )
    Watch.objects.create(user=User.objects.create(username="pia"), project="home:alice")
    TokenHolder.objects.create(token=1, role="member", group="team")
    UnreadChange.objects.create(backend="main", project="p", event_id=event.id, recorded_at=now)
    breaker.record_failure("builds.notify_backend:hook", "https://a:***@b/: refused", at_once=True)

"""Events that ask for a project's metadata: how many requests, and who reads it meanwhile."""

import pytest
from django.test import Client
from django.utils import timezone

from tailrace.domains.builds.backends.refreshes import MAX_REQUESTED
from tailrace.domains.builds.models import Project, RoleHolder, UnreadChange
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tests.web.program import program

pytestmark = pytest.mark.django_db(transaction=True)
OPEN, SOURCE = "home:open", "obs:main:1"


@pytest.fixture(autouse=True)
def _public_project(settings) -> None:
    settings.OBS_UNKNOWN_PROJECTS = "hidden"
    settings.OBS_BACKENDS = {"main": "http://127.0.0.1:9"}
    Project.objects.create(backend="main", name=OPEN, refreshed_at=timezone.now())


def test_an_event_of_a_token_that_names_many_packages_requests_few_of_them(run_jobs) -> None:
    """The backend would be sent three requests for each of them."""
    actions = [{"targetproject": OPEN, "targetpackage": f"p{number}"} for number in range(1000)]
    request = {"number": 7, "author": "carl", "actions": actions}
    publish([NewEvent("builds.request_create", request, source="api:carl:x")])
    run_jobs("subscriptions.notify")
    refreshes = Job.objects.filter(handler="builds.update_backend_infos")
    assert refreshes.count() == MAX_REQUESTED
    assert Job.objects.get(handler="subscriptions.notify").state == "pending"


def test_a_project_that_changed_is_hidden_until_it_is_read(client: Client) -> None:
    """Its roles may have changed as well, so even those who held one may not read of it."""
    reader = program("ann", may=("tailrace_events.view_event", "tailrace_events.view_payload"))
    RoleHolder.objects.create(backend="main", project=OPEN, role="reader", user="ann")
    (event,) = publish(
        [NewEvent("builds.commit", {"project": OPEN, "package": "p", "rev": "1"}, source=SOURCE)]
    )
    feed = f"/feeds/projects/{OPEN}.atom"
    assert reader.get(f"/events/{event.id}").status_code == 200
    assert client.get(feed).status_code == 200
    publish([NewEvent("builds.update_project", {"project": OPEN}, source=SOURCE)])
    assert reader.get(f"/events/{event.id}").status_code == 404
    assert client.get(feed).status_code == 404
    UnreadChange.objects.all().delete()
    assert reader.get(f"/events/{event.id}").status_code == 200

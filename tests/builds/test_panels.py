"""The domain's cards on the overview show what an operator has to know."""

import pytest
from django.contrib.auth.models import User

from tailrace.domains.builds.models import Poller
from tailrace.domains.builds.platform.panels import Pollers
from tailrace.events.models import Event
from tests.servers import backend as servers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(client):
    """Return the overview's text, as an operator reads it."""
    User.objects.create_superuser("ada", password="a")
    client.login(username="ada", password="a")
    return lambda: client.get("/").content.decode()


def state():
    (row,) = Pollers().context()["rows"]
    return row["state"]


def test_a_poller_is_up_to_date_behind_failing_late_or_off(backend, poll, clock, settings):
    backend.add(5)
    poll()
    assert state() == "up to date"
    Poller.objects.update(end_seen=100)
    assert state() == "behind"
    backend.faults.append(servers.says(503))
    poll()
    assert state() == "failing"
    clock.step(60)
    poll()
    assert state() == "up to date"
    clock.step(3600)
    assert state() == "late"
    settings.OBS_BACKENDS = {}
    assert state() == "off"


def test_a_lag_near_what_another_reader_prunes_is_warned_of(backend, poll, page, settings, caplog):
    backend.add(5)
    poll()
    backend.add(260)
    poll()
    assert state() == "far behind"
    assert "260 entries were waiting" in page()
    assert "poll.near_slack" in caplog.text
    settings.OBS_NOPRUNE = False  # nobody else prunes it
    assert state() == "up to date"
    settings.OBS_NOPRUNE = True
    poll()
    assert state() == "up to date"


def test_the_overview_shows_a_backend_that_is_down(backend, poll, page):
    backend.add(5)
    poll()
    backend.faults.append(servers.says(500, b"<summary>no disk</summary>"))
    poll()
    text = page()
    assert "1 error in a row" in text
    assert "answered 500: no disk" in text


def test_a_backend_that_was_never_read_is_named(backend, page):
    assert "Never read: main" in page()


def test_gaps_are_shown_until_acknowledged(backend, poll, page, client):
    backend.add(1)
    poll()
    backend.add(99)
    backend.log.prune_below(50)
    backend.notify("MOON_PHASE", {})
    poll()
    text = page()
    assert "48 notifications of main are lost: 2 to 49" in text
    assert "MOON_PHASE" in text
    lost = Event.objects.get(type="builds.sync_lost")
    client.post(f"/overview/events/{lost.pk}/acknowledge")
    assert "are lost: 2 to 49" not in page()

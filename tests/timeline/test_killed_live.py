"""Points of devices when the web server and the worker are killed: what was answered is kept."""

import signal
from pathlib import Path

import httpx
import pytest

from tailrace.domains.timeline.models import Device
from tailrace.events.models import Event
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.models import Job
from tests.kit import held, sessions_that_wait, wait_until, worker
from tests.servers.gunicorn import web_server
from tests.timeline.kit import visible
from tests.web.program import program

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.django_db(transaction=True)]
ANNOUNCE = "timeline.announce_points"
SERVER = ("uvicorn", "tailrace.config.servers.asgi:application", "--port", "{port}")


def test_points_survive_a_killed_web_server_and_a_killed_worker(
    process_env: dict[str, str], tmp_path: Path, run_jobs, clock
) -> None:
    ann = program("ann", "timeline:points")
    body = {"_type": "location", "lat": 52.5, "lon": 13.4, "tid": "an"}
    with web_server(tmp_path, *SERVER, **process_env) as server:
        headers = {"Authorization": f"Bearer {ann.text}"}
        for n in range(3):
            answer = httpx.post(
                f"{server.url}/api/points/owntracks",
                json={**body, "tst": 1772352000 + n},
                headers=headers,
            )
            assert answer.status_code == 200, answer.text
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    assert visible(ann.user) == 3
    device = Device.objects.get()
    lock = "SELECT 1 FROM tailrace_timeline_device WHERE id = %s FOR UPDATE"
    with held(lock, device.pk), worker(process_env, [ANNOUNCE], log=tmp_path / "log") as killed:
        wait_until(lambda: sessions_that_wait(), what="the worker waits for the device")
        killed.signal(signal.SIGKILL)
    assert not Event.objects.filter(type="timeline.points_added").exists()
    Job.objects.filter(state="running").update(lease_until=device.created_at)
    rescue.rescue()
    Job.objects.filter(state="pending").update(due_at=device.created_at)
    run_jobs(ANNOUNCE)
    event = Event.objects.get(type="timeline.points_added")
    assert event.payload["count"] == 3

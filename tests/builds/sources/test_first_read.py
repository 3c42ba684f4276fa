"""The first read of a log: where it begins, and that nobody is notified of the past."""

import pytest

from tailrace.domains.builds.models import ProjectLogEntry
from tailrace.domains.builds.settings import BuildsSettings
from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.inserting.fan_out import jobs_for
from tailrace.jobs.models import Job

pytestmark = pytest.mark.django_db(transaction=True)

COMMIT = {"project": "p", "package": "q", "user": "u", "rev": "1"}
FAIL = {"project": "p", "package": "q", "repository": "r", "arch": "a"}
NOTIFYING = {"builds.notify_backend", "subscriptions.notify"}


@pytest.fixture(autouse=True)
def defaults(backend, settings):
    settings.OBS_START, settings.OBS_PAST, settings.OBS_NOPRUNE = "", "record", True
    backend.notify("SRCSRV_COMMIT", COMMIT)
    for _ in range(9):
        backend.notify("BUILD_FAIL", FAIL)


def numbers():
    return sorted(int(event.source_id) for event in Event.objects.exclude(type="builds.log_reset"))


def handlers_of(source):
    return set(Job.objects.filter(event__source=source).values_list("handler", flat=True))


def test_beside_a_frontend_it_begins_at_the_end(backend, poll, poller):
    poll()
    assert poller().next_number == 11
    assert numbers() == []
    backend.notify("BUILD_FAIL", FAIL)
    poll()
    assert numbers() == [11]
    assert handlers_of("obs:main:1") >= NOTIFYING


def test_the_sole_reader_records_the_past_and_notifies_nobody(backend, poll, settings, run_jobs):
    settings.OBS_NOPRUNE = False
    poll()
    assert numbers() == list(range(1, 11))
    assert handlers_of("obs:main:past") == {"builds.project_log", "builds.update_backend_infos"}
    run_jobs("builds.project_log")
    assert ProjectLogEntry.objects.count() == 10
    backend.notify("BUILD_FAIL", FAIL)
    poll()
    assert handlers_of("obs:main:1") >= NOTIFYING


def test_what_comes_after_the_first_contact_is_not_of_the_past(backend, poll, settings):
    settings.OBS_NOPRUNE = False
    # The answer to the third request, the first page: two more have come since the log's end.
    backend.faults.extend([lambda c, r: c.write(r)] * 2)
    before = backend.answer

    def answer(request):
        if len(backend.reads) == 2:
            backend.add(2)
        return before(request)

    backend.answer = answer
    poll()
    assert Event.objects.filter(source="obs:main:past").count() == 10
    assert Event.objects.filter(source="obs:main:1").count() == 2


def test_a_quiet_event_gets_no_jobs_later_either(poll, settings):
    settings.OBS_NOPRUNE = False
    poll()
    events = [Recorded.from_model(event) for event in Event.objects.all()]
    wanted = {job.handler for event in events for job in jobs_for(event)}
    assert wanted == {"builds.project_log", "builds.update_backend_infos"}
    assert {name for name, handler in registry.all_handlers().items() if handler.quiet} == {
        "builds.project_log", "builds.update_backend_infos", "builds.update_released_binaries",
    }  # fmt: skip


def test_the_past_is_told_on_request(poll, settings):
    settings.OBS_START, settings.OBS_PAST = "oldest", "notify"
    poll()
    assert numbers() == list(range(1, 11))
    assert handlers_of("obs:main:1") >= NOTIFYING


@pytest.mark.parametrize(
    ("start", "first"), [("7", 7), ("1", 4), ("99", None), ("oldest", 4), ("now", None)]
)
def test_it_begins_where_the_setting_says(backend, poll, settings, start, first):
    settings.OBS_START = start
    backend.log.prune_below(4)
    poll()
    backend.notify("BUILD_FAIL", FAIL)
    poll()
    assert numbers() == list(range(first or 11, 12))
    assert not Event.objects.flagged().exists()


def test_a_log_that_is_reset_later_is_not_of_the_past(backend, poll, settings):
    settings.OBS_NOPRUNE = False
    poll()
    backend.log.reset()
    backend.notify("BUILD_FAIL", FAIL | {"arch": "other"})
    poll()
    assert handlers_of("obs:main:2") >= NOTIFYING


@pytest.mark.parametrize("text", ["yesterday", "0", "-1", "1.5", "9" * 30, "Now"])
def test_a_wrong_start_is_named_at_start_up(monkeypatch, text):
    monkeypatch.setenv("OBS_START", text)
    _settings, (problem,) = BuildsSettings.load()
    assert problem.name == "OBS_START"
    assert "is not `oldest`, `now` or a number from 1" in str(problem)

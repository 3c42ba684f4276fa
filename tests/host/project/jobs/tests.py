"""The project's own tests of its jobs, by Django's runner and by pytest."""

from django.test import TestCase, TransactionTestCase, override_settings
from events.event_types import VacancyAdded
from jobs.handlers import Announce
from jobs.models import Job
from tailrace.environment.conf import conf
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.testing import assert_not_owed, assert_owed, perform, run_owed


def add_vacancy():
    vacancy = Job.objects.create(title="Somebody who drives")
    (event,) = publish(NewEvent(VacancyAdded, {"vacancy": vacancy.pk, "title": vacancy.title}))
    return vacancy, event


class Announcing:
    def test_a_vacancy_is_announced_once(self):
        vacancy, event = add_vacancy()
        assert_owed(Announce, event=event, count=1)
        assert run_owed() == 1
        assert_not_owed(Announce)
        vacancy.refresh_from_db()
        assert vacancy.announced == 1

    def test_one_job_is_performed(self):
        _vacancy, event = add_vacancy()
        job = perform(Announce, event=event)
        assert (job.state, job.result) == ("completed", {"title": "Somebody who drives"})

    def test_slow_calls_are_settled_too(self):
        for _ in range(3):
            enqueue("jobs.wait", {"seconds": 0.6})
        assert run_owed("jobs.wait") == 3

    def test_callbacks_of_the_commit_reach_no_broker(self):
        with TestCase.captureOnCommitCallbacks(execute=True) as callbacks:
            add_vacancy()
        assert len(callbacks) == (2 if isinstance(self, TestCase) else 0)
        assert run_owed() == 1

    def test_lines_go_to_the_loggers_of_the_project(self):
        enqueue("jobs.wait", {"seconds": -1})
        with self.assertLogs("tailrace.jobs", "WARNING") as logs:
            assert run_owed("jobs.wait", may_fail=True) == 1
        [line] = [each for each in logs.output if "job.retry" in each]
        assert "queue=jobs.wait" in line, line
        assert "a secret" not in "".join(logs.output)

    def test_settings_are_overridden(self):
        assert conf.JOBS_TIME_LIMIT == 600
        with override_settings(TAILRACE={"JOBS_TIME_LIMIT": 5}):
            assert conf.JOBS_TIME_LIMIT == 5
        assert conf.JOBS_TIME_LIMIT == 600


class RolledBack(Announcing, TestCase):
    pass


class Committed(Announcing, TransactionTestCase):
    pass

"""Gatherings from before records was installed are found by its search."""

from collections.abc import Callable
from io import StringIO

import pytest

from tailrace.domains.photos.models import Gathering
from tailrace.domains.records.handlers.deposit_event import DepositEvent
from tailrace.domains.records.models import Deposition
from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tests.across.test_gatherings_in_search import STEPS, hits
from tests.kit import end_older_transactions
from tests.photos.kit import upload_photos
from tests.web.program import program

pytestmark = pytest.mark.django_db(transaction=True)


def repair() -> None:
    """Run `manage.py fsck --fix`, as an operator does."""
    end_older_transactions()
    kind = "jobs.events_have_their_jobs"
    call_subcommand("fsck", "--fix", "--pause=0", f"--kind={kind}", stdout=StringIO())


def test_they_get_their_jobs_once(
    run_jobs: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before_the_install:
        before_the_install.setattr(DepositEvent, "wants", lambda *_: False)
        upload_photos(5)
        run_jobs("photos.cluster")
    gathering = Gathering.objects.get()
    happened = Event.objects.filter(type__startswith="photos.gathering_").count()
    jobs = Job.objects.filter(handler=DepositEvent.name)
    assert (happened, jobs.count()) == (1, 0)
    repair()
    assert jobs.count() == happened
    run_jobs(*STEPS)
    ana = program("ana", "records:read")
    assert hits(ana) == [f"events/gathering/{gathering.pk}"]
    jobs.all().delete()
    repair()
    assert not jobs.exists(), "an event that was checked is not owed again, its job being pruned"


def test_one_that_was_submitted_is_skipped(run_jobs: Callable[..., int]) -> None:
    upload_photos(5)
    run_jobs(*STEPS)
    Job.objects.filter(handler=DepositEvent.name).delete()
    repair()
    run_jobs(*STEPS)
    assert Job.objects.get(handler=DepositEvent.name).state == "skipped"
    assert Deposition.objects.count() == 1

"""What the sweeper finds of removal requests, and repairs."""

import pytest
from cryptography.fernet import Fernet

from tailrace.domains.protection.invariants import RemovalsByNewestKey, RemovalsHaveTheirJob
from tailrace.domains.protection.services.removals.moves import QUEUE
from tailrace.domains.protection.services.removals.person import decrypted
from tailrace.jobs.models import Job
from tests.protection.removals.kit import ANN, DAY, form_entry, history, now, started

pytestmark = pytest.mark.django_db


def sweep(invariant) -> int:
    violations = invariant.find()
    return invariant.repair(violations) if violations else 0


def test_a_step_whose_job_is_lost_is_done_all_the_same(broker, ann, run_removals, clock) -> None:
    row = started(ann)
    Job.objects.filter(handler=QUEUE).delete()
    assert sweep(RemovalsHaveTheirJob()) == 0, "it may be under way"
    clock.step(700)
    assert sweep(RemovalsHaveTheirJob()) == 1
    run_removals()
    assert now(row).state == "awaiting_confirmation"
    clock.step(2 * DAY)
    assert sweep(RemovalsHaveTheirJob()) == 0, "it is not due"


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_step_whose_job_failed_is_left_to_a_person(broker, ann, clock, state) -> None:
    row = started(ann)
    clock.step(700)
    assert sweep(RemovalsHaveTheirJob()) == 0, "a job waits for it"
    Job.objects.filter(handler=QUEUE).update(state=state, finished_at=now(row).created_at)
    assert sweep(RemovalsHaveTheirJob()) == 1
    assert now(row).state == "needs_person"
    assert now(row).note.endswith(f"is {state}")
    assert sweep(RemovalsHaveTheirJob()) == 0


def test_a_broker_that_left_the_file_is_left_to_a_person(
    broker, ann, run_removals, rewrite
) -> None:
    row = started(ann)
    rewrite(form_entry(broker, "other"))
    run_removals()
    assert now(row).state == "needs_person"
    assert "there is no broker 'people'" in now(row).note


def test_persons_are_encrypted_again_with_a_new_key(broker, ann, settings) -> None:
    old = Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    row = started(ann)
    assert sweep(RemovalsByNewestKey()) == 0
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), old]
    assert sweep(RemovalsByNewestKey()) == 1
    assert sweep(RemovalsByNewestKey()) == 0
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    assert decrypted(now(row).person) == ANN


def test_a_lost_key_stops_the_request_and_loses_nothing(
    broker, ann, settings, run_removals, clock
) -> None:
    old = Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    row = started(ann)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    run_removals()
    assert (now(row).state, broker.sent) == ("pending", [])
    assert sweep(RemovalsByNewestKey()) == 0
    settings.ENCRYPTION_KEYS = [*settings.ENCRYPTION_KEYS, old]
    clock.step(3700)
    run_removals()
    assert history(row)[-1] == "awaiting_confirmation"

"""Files whose process was killed before a deposition had them."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.domains.records.depositions.deletion import DELETE_FILES
from tailrace.domains.records.depositions.receive import SUBMITTED_BY, receive
from tailrace.domains.records.models import Deposition
from tailrace.jobs.models import Job
from tests import forks
from tests.kit import ROOT, held, wait_until
from tests.records.kit import metadata

pytestmark = pytest.mark.django_db(transaction=True)
DEPOSIT = """
import sys
import django; django.setup()
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from tailrace.domains.records.depositions.receive import receive
from tests.records.kit import metadata
folder = {"OPTIONS": {"location": sys.argv[1]}}
settings.STORAGES["records"] = settings.STORAGES["timeline"] | folder
receive(User.objects.get(), metadata(), [SimpleUploadedFile("lost.csv", b"lost")])
"""


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_process_killed_before_its_deposition_leaves_no_file_for_long(
    records_folder: Path, process_env: dict[str, str], run_jobs: Callable[..., int], clock: Any
) -> None:
    ana = User.objects.create_user("ana")
    receive(ana, metadata(), [SimpleUploadedFile("kept.csv", b"kept")])
    command = ["-c", DEPOSIT, str(records_folder)]
    # It waits for the lock of the user, behind the files and before the deposition.
    with held("SELECT 1 FROM auth_user FOR UPDATE"):
        process = forks.Fork(command, cwd=ROOT, env=process_env)
        wait_until(lambda: len(contents(records_folder)) == 2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert Deposition.objects.count() == 1
    run_jobs(DELETE_FILES)
    assert len(contents(records_folder)) == 2, "another request may still be at work"
    clock.step((SUBMITTED_BY + timedelta(minutes=1)).total_seconds())
    run_jobs(DELETE_FILES)
    assert contents(records_folder) == [b"kept"]
    jobs = Job.objects.filter(handler=DELETE_FILES).order_by("pk")
    assert list(jobs.values_list("state", flat=True)) == ["skipped", "completed"]


def test_a_deposition_without_files_leaves_no_job() -> None:
    receive(User.objects.create_user("ana"), metadata())
    assert not Job.objects.filter(handler=DELETE_FILES).exists()

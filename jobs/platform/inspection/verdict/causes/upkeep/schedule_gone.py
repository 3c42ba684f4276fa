from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.engine_database import home
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.models import Schedule
from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.verdict.cause import Button, Cause, Check, Facts, admin_link
from tailrace.jobs.runtime import audit

MAX_NAMED = 20


class ScheduleGone(Check):
    """Declared schedules without a row, and schedules that the code no longer declares."""

    code = "schedule_gone"
    rank = 60
    button = Button("Schedule it again", "tailrace_jobs.change_schedule")

    def causes(self, facts: Facts) -> list[Cause]:
        retired = Schedule.objects.retired().filter(enabled=False).order_by("-retired_at")
        causes = [_retired(row) for row in retired[:MAX_NAMED]]
        return causes + [_missing(name) for name in sync_declared.missing_schedules()[:MAX_NAMED]]

    def mend(self, user: User, subject: str) -> str:
        with transaction.atomic(using=home()):
            if not sync_declared.restore_schedule(subject):
                return f"{subject} is already scheduled, or no code declares it."
            row = Schedule.objects.get(name=subject)
            audit.record(user, Schedule, "scheduled again", [(row.pk, subject)])
        return f"{subject}: scheduled again."


def _retired(row: Schedule) -> Cause:
    return Cause(
        f"The schedule {row.name} has not run since {when(row.retired_at)}: the code that migrated"
        " last does not declare it.",
        subject=row.name,
        since=row.retired_at,
        advice="If environment variables were missing then, run manage.py migrate with the"
        " variables of the workers. If the schedule is no longer needed, delete it.",
        link=admin_link(f"Schedule {row.name}", "schedule_change", row.pk),
    )


def _missing(name: str) -> Cause:
    return Cause(
        f"The schedule {name} is missing: the code declares it, but its row was deleted.",
        subject=name,
        advice="celery beat restores it at its next start, and manage.py migrate does, too.",
        link=admin_link("Schedules", "schedule_changelist"),
    )

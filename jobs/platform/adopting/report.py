"""The whole report on a Celery application."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from celery import Celery

from tailrace.jobs.platform.adopting import celery_settings, schedules, tasks, workers
from tailrace.jobs.platform.adopting.celery_settings import SettingReport
from tailrace.jobs.platform.adopting.schedules import ScheduleReport
from tailrace.jobs.platform.adopting.tasks import TaskReport, Verdict
from tailrace.jobs.platform.adopting.workers import Workers


@dataclass(frozen=True, slots=True)
class Report:
    app: str
    tasks: tuple[TaskReport, ...]
    settings: tuple[SettingReport, ...]
    schedules: tuple[ScheduleReport, ...]
    workers: Workers | None
    """None if the broker did not answer."""
    unserved_queues: tuple[str, ...]
    """Queues that tasks or schedules are routed to, and that no worker consumes."""

    def of(self, verdict: Verdict) -> list[TaskReport]:
        return [task for task in self.tasks if task.verdict == verdict]

    def obstacles(self) -> Iterator[str]:
        """Yield what has to change before the tasks can move, in a few words each."""
        if waiting := len(self.of(Verdict.CHANGE_FIRST)):
            yield f"{waiting} {'task needs' if waiting == 1 else 'tasks need'} a change"
        if unsupported := [each.name for each in self.settings if each.is_obstacle]:
            yield f"not supported: {', '.join(unsupported)}"
        if self.unserved_queues:
            yield f"no worker consumes: {', '.join(self.unserved_queues)}"
        if lost := sum(each.is_obstacle for each in self.schedules):
            yield f"{lost} {'schedule has' if lost == 1 else 'schedules have'} no valid task"


def report_on(app: Celery, *, ask_workers: bool = True) -> Report:
    """Return the report on this application, whose task modules are imported. It reads the rows of
    django-celery-beat if the project has them, and asks the workers if the broker answers."""
    app.loader.import_default_modules()
    app.finalize()
    running = workers.ask(app) if ask_workers else None
    of_tasks = tuple(sorted(tasks.of_app(app), key=lambda task: task.name))
    of_schedules = tuple(schedules.of_app(app, {task.name: task for task in of_tasks}))
    routed = {task.queue for task in of_tasks if task.verdict != Verdict.STAYS}
    routed |= {each.queue for each in of_schedules if each.queue}
    return Report(
        app=str(app.main),
        tasks=of_tasks,
        settings=tuple(celery_settings.of_app(app, running)),
        schedules=of_schedules,
        workers=running,
        unserved_queues=tuple(sorted(routed - set(running.queues))) if running else (),
    )


def as_json(report: Report) -> dict[str, Any]:
    return {
        "app": report.app,
        "can_move": not list(report.obstacles()),
        "obstacles": list(report.obstacles()),
        "tasks": [
            {
                "name": task.name,
                "queue": task.queue,
                "verdict": task.verdict.value,
                "reasons": list(task.reasons),
                "notes": list(task.notes),
            }
            for task in report.tasks
        ],
        "settings": [
            {"name": each.name, "value": each.value, "supported": not each.is_obstacle}
            | {"meaning": each.meaning}
            for each in report.settings
        ],
        "queues": None if report.workers is None else dict(report.workers.queues),
        "unserved_queues": list(report.unserved_queues),
        "schedules": [
            {
                "name": each.name,
                "source": each.source,
                "task": each.task,
                "timing": each.timing,
                "moves": each.moves,
                "becomes": each.becomes,
                "notes": list(each.notes),
            }
            for each in report.schedules
        ],
    }

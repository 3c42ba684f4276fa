"""Flows: several jobs that belong together, and wait for one another.

    from tailrace.jobs.flows import NewFlow

    with transaction.atomic():
        flow = NewFlow("import 7", deadline=timedelta(hours=2))
        stage = flow.add(Stage, {"import_id": 7})
        pages = flow.group(ReadPage, [{"page": 1}, {"page": 2}], after=stage)
        flow.add(Publish, after=pages)
        flow.add(RemoveFiles, after_end=pages)
        flow.enqueue()

A job waits for any number of parents. When all of them have ended, it runs if they ended as it
needs (`jobs.engine.waking.dependents`), and reads their results by `job.parents()`.
"""

from tailrace.jobs.engine.inserting.new_job import InvalidJob
from tailrace.jobs.flows.graph import MAX_DEPENDENCIES, MAX_JOBS, FlowJob
from tailrace.jobs.flows.new_flow import NewFlow
from tailrace.jobs.flows.running_flow import RunningFlow

__all__ = ["MAX_DEPENDENCIES", "MAX_JOBS", "FlowJob", "InvalidJob", "NewFlow", "RunningFlow"]

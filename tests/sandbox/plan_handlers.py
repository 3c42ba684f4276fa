"""Handlers that plans of the tests have."""

from typing import Any

from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.subscriptions.plans.payload import AccountPayload


class PlanWork(AccountPayload):
    """With a field of its own, whose default is stored with each schedule."""

    deep: bool = False


class PlanScan(Handler):
    """A scan of an account."""

    name = "test.plan_scan"
    Payload = PlanWork

    def handle(self, job: ClaimedJob) -> Any:
        return {"account": job.payload.account}


class PlanHome(PlanScan):
    """Another one."""

    name = "test.plan_home"


class PlanReport(PlanScan):
    """A report on an account."""

    name = "test.plan_report"
    Payload = AccountPayload

"""The base class of the handlers whose jobs belong to an account."""

from collections.abc import Mapping
from typing import Any

from tailrace.jobs.handler import Handler
from tailrace.subscriptions.plans.payload import AccountPayload


class AccountHandler(Handler):
    """The account is the lane. Operators may request jobs."""

    Payload = AccountPayload
    fair = True
    request_permission = "tailrace_jobs.add_job"

    def payload_lane(self, payload: Mapping[str, Any]) -> str:
        return str(payload["account"])

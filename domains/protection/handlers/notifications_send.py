"""Send the notices of alerts."""

from typing import Any

from tailrace.domains.protection.alerts.raising import NOTIFICATIONS
from tailrace.domains.protection.handlers.account_handler import AccountHandler
from tailrace.domains.protection.services.announcing import announce_due
from tailrace.jobs.handler import ClaimedJob


class SendNotifications(AccountHandler):
    """Notify a user of alerts whose notice is due, by the channels that the user chose."""

    name = NOTIFICATIONS

    def handle(self, job: ClaimedJob) -> Any:
        return {"alerts": announce_due(job.payload.account)}

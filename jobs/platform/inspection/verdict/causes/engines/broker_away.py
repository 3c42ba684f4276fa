from tailrace.jobs.platform.inspection.broker import broker
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts


class BrokerAway(Check):
    """Without the broker no wake-up is sent or received."""

    code = "broker_away"
    rank = 10

    def causes(self, facts: Facts) -> list[Cause]:
        if broker() == "ok":
            return []
        words = "The broker does not answer, so workers are not woken; no job is lost."
        advice = "Start the broker, or correct BROKER_URL. The tick then wakes all queues."
        return [Cause(words, advice=advice)]

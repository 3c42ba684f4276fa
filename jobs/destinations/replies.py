"""The result of a message that was sent over HTTP."""

from typing import TYPE_CHECKING

from tailrace.jobs.destinations.delivery import DeliveryResult, DeliveryStatus

if TYPE_CHECKING:  # the core has no HTTP client
    from tailrace.net.http_client import Reply


def result_of_reply(reply: "Reply", *, redirected: str = "set the new URL") -> DeliveryResult:
    """Return the result of a reply: 408, 429, 5xx and network errors are retried.

    `redirected` is what to do if the destination has another URL.
    """
    status = reply.status
    if reply.refused:
        return DeliveryResult(DeliveryStatus.REJECTED, reply.error)
    if status is None or reply.error:
        return DeliveryResult(DeliveryStatus.UNAVAILABLE, reply.error or "no answer")
    if 200 <= status < 300:
        return DeliveryResult(DeliveryStatus.SENT, result={"status": status})
    reason = f"answered {status}"
    if status in (408, 429) or status >= 500:
        return DeliveryResult(DeliveryStatus.FAILED, reason, reply.retry_after)
    if 300 <= status < 400:
        reason += f": redirects are not followed; {redirected}"
    return DeliveryResult(DeliveryStatus.REJECTED, reason)

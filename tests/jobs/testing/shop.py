"""The shop of docs/how-to/testing.md: what its examples test."""

import json

import httpx
from django.conf import settings
from django.core.mail import send_mail
from pydantic import BaseModel

from tailrace.events.types import EventType
from tailrace.jobs.handler import Handler, Retry
from tailrace.net.signing import signed_headers, signer


class OrderPaid(EventType):
    """An order was paid."""

    name = "shop.order_paid"

    class Payload(BaseModel):
        order: int
        email: str


class SendReceipt(Handler):
    """Mail the receipt of a paid order."""

    name = "shop.send_receipt"
    on = [OrderPaid]

    def handle(self, job):
        paid: OrderPaid.Payload = job.event.payload
        send_mail("Receipt", f"Order {paid.order}", None, [paid.email])


class NotifyWarehouse(Handler):
    """POST each paid order to the warehouse."""

    name = "shop.notify_warehouse"
    on = [OrderPaid]

    def wants(self, event):
        return bool(getattr(settings, "SHOP_WAREHOUSE", ""))

    def handle(self, job):
        body = json.dumps(job.event.raw_payload).encode()
        headers = signed_headers(str(job.event.id), body, signer(settings.SHOP_SECRET))
        reply = httpx.post(settings.SHOP_WAREHOUSE, content=body, headers=headers, timeout=30)
        if reply.status_code >= 400:
            raise Retry(f"HTTP {reply.status_code}")


class MonthlyReport(Handler):
    """Make the report of a month."""

    name = "shop.monthly_report"

    class Payload(BaseModel):
        month: str

    def handle(self, job):
        if not job.payload.month:
            raise ValueError("no month")
        return {"month": job.payload.month, "orders": 0}

"""Confirm a user's phone number: a code is sent to it, and the user enters the code.

A job creates the code just before it sends it, so no queue, log or page contains the code; only its
hash is stored. The waits after a wrong code and before a new code double each time.
"""

import secrets
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac
from pydantic import BaseModel

from tailrace.db.query import database_now
from tailrace.jobs.destinations.delivery import DeliveryStatus
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Permanent, Retry, Skip
from tailrace.net.http_client import Request
from tailrace.net.shared_client import shared_client
from tailrace.subscriptions.channels.sms import limits, service
from tailrace.subscriptions.models import PhoneCode, Preferences
from tailrace.web.accounts.user_lock import locked

DIGITS = 6
LIFETIME = timedelta(minutes=10)
MAX_TRIES = 5
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)
"""The wait between two codes, which doubles each time: the first, and the maximum."""
FIRST_TRY_WAIT = timedelta(seconds=2)
"""The wait after the first wrong code; it doubles each time."""


class PhoneError(ValueError):
    """The request was refused. The message names the remedy."""


def send_code(user: User) -> None:
    """Enqueue a text with a code to the user's number, or raise PhoneError."""
    if not settings.SMS_URL:
        raise PhoneError("this server does not send text messages (SMS_URL is not set)")
    refused = ""
    with locked(user):
        row = Preferences.objects.filter(user=user).first()
        if row is None or not row.phone:
            raise PhoneError("there is no phone number: save one first")
        if row.phone_confirmed:
            raise PhoneError("the number is already confirmed")
        code, _created = PhoneCode.objects.get_or_create(user=user)
        now = database_now()
        if code.request_after and now < code.request_after:
            wait = (code.request_after - now).total_seconds()
            raise PhoneError(f"a code was sent: you can request another one in {wait:.0f} s")
        if limits.take_code(user.pk, row.phone):
            wait_now = min(FIRST_WAIT * 2 ** min(code.requests, 10), LONGEST_WAIT)
            code.phone, code.code_hash, code.expires_at = row.phone, "", None
            code.requests, code.request_after = code.requests + 1, now + wait_now
            code.save()
            enqueue(SendCode, {"user": user.pk}, unique_key=str(user.pk))
        else:
            refused = f"{limits.CODES_PER_DAY} codes were sent today"
    if refused:
        raise PhoneError(f"{refused}: try again tomorrow")


def confirm(user: User, code: str) -> None:
    """Confirm the user's number if the code is right; otherwise raise PhoneError."""
    with locked(user):  # the error is raised outside, so that the count of wrong codes is committed
        problem = _try_code(user, code.strip())
    if problem:
        raise PhoneError(problem)


def _try_code(user: User, code: str) -> str:
    """Confirm the number and return an empty text, or return why the code is refused."""
    preferences = Preferences.objects.filter(user=user).first()
    row, now = PhoneCode.objects.filter(user=user).first(), database_now()
    if preferences is None or row is None or not row.code_hash or row.phone != preferences.phone:
        return "no code was sent to this number: request one"
    if row.expires_at is None or row.expires_at <= now or row.tries >= MAX_TRIES:
        return "the code is no longer valid: request another one"
    if row.try_after and now < row.try_after:
        return f"wait {(row.try_after - now).total_seconds():.0f} s before the next try"
    if constant_time_compare(row.code_hash, _hash(user.pk, row.phone, code)):
        preferences.confirmed_phone = row.phone
        preferences.save(update_fields=["confirmed_phone"])
        row.delete()
        return ""
    row.tries, row.try_after = row.tries + 1, now + FIRST_TRY_WAIT * 2**row.tries
    row.save(update_fields=["tries", "try_after"])
    return f"the code is wrong: {MAX_TRIES - row.tries} tries are left"


class SendCode(Handler):
    """Send a new code to a user's unconfirmed number."""

    name = "subscriptions.phone_code"
    concurrency = 20
    max_attempts = 3
    backoff = Backoff(15, 60)
    time_limit = 60

    class Payload(BaseModel):
        user: int

    async def handle(self, job: ClaimedJob) -> dict[str, Any]:
        request = await sync_to_async(_new_code)(job)
        reply = await shared_client(public_only=False).send(request)
        if not reply.arrived or reply.status is None:
            raise Retry(reply.error or "no answer")
        result = service.result_of(reply, reply.status)
        if result.status is DeliveryStatus.FAILED:
            raise Retry(result.reason, after=result.after)
        if result.status is not DeliveryStatus.SENT:
            raise Permanent(result.reason)
        return {"status": reply.status}


def _new_code(job: ClaimedJob) -> Request:
    """Store the hash of a new code, and return the request that sends the code."""
    if not settings.SMS_URL:
        raise Skip("text messages are not set up: SMS_URL")
    with transaction.atomic():
        row = PhoneCode.objects.select_for_update().filter(user=job.payload.user).first()
        if row is None:
            raise Skip("the number was confirmed, or the user was deleted")
        text = limits.Text(row.user_id, row.phone)
        if not limits.within_a_day([text])(text):
            raise Skip(f"{settings.SMS_PER_DAY} texts were sent today (SMS_PER_DAY)")
        code = f"{secrets.randbelow(10**DIGITS):0{DIGITS}}"
        row.code_hash, row.tries, row.try_after = _hash(row.user_id, row.phone, code), 0, None
        row.expires_at = database_now() + LIFETIME
        row.save()
    body = f"{code} is your code for Tailrace. Do not share it."
    return service.text_request(row.phone, body, f"code_{job.id}_{job.claim_no}")


def _hash(user: int, phone: str, code: str) -> str:
    return salted_hmac(
        "subscriptions.phone_code", f"{user} {phone} {code}", algorithm="sha256"
    ).hexdigest()

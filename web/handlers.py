"""Delete accounts, and mail links to choose a new password."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from pydantic import BaseModel

from tailrace.db import clock
from tailrace.db.query import database_now
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Skip, Snooze
from tailrace.web.accounts import deletion

TURN = timedelta(seconds=20)
"""How long one call deletes before it lets other jobs run."""


class DeleteAccount(Handler):
    """Delete a closed account with all personal data of its user."""

    name = deletion.HANDLER
    max_attempts = 12
    backoff = Backoff(10, 60, 300, 3600)

    class Payload(BaseModel):
        user: int

    def handle(self, job: ClaimedJob) -> None:
        until = clock.now() + TURN

        def interrupted() -> bool:
            return clock.now() > until or job.shutting_down()

        if not deletion.delete_account(job.payload.user, interrupted):
            raise Snooze("there is more data to delete", seconds=0)


class ResetTokens(PasswordResetTokenGenerator):
    """Tokens of password reset links, whose age is measured by the database's clock."""

    def _now(self) -> datetime:
        return database_now().replace(tzinfo=None)


reset_tokens = ResetTokens()


class PasswordResetMail(Handler):
    """Mail a link to choose a new password. The link is made when the job runs, so that no payload
    contains it."""

    name = "web.password_reset_mail"
    max_attempts = 4
    backoff = Backoff(10, 60, 300)

    class Payload(BaseModel):
        user: int | None
        """None: no user has the mail address that was entered."""

    def handle(self, job: ClaimedJob) -> Any:
        user = User.objects.filter(pk=job.payload.user, is_active=True).exclude(email="").first()
        if user is None:
            raise Skip("no active user has this mail address")
        id = urlsafe_base64_encode(force_bytes(user.pk))
        token = reset_tokens.make_token(user)
        context = {
            "user": user,
            "address": settings.PUBLIC_URL + reverse("password_reset_confirm", args=[id, token]),
            "public_url": settings.PUBLIC_URL,
            "minutes": settings.PASSWORD_RESET_TIMEOUT // 60,
        }
        EmailMessage(
            subject="Choose a new password for Tailrace",
            body=render_to_string("tailrace/web/accounts/password_reset_mail.txt", context),
            from_email=settings.DEFAULT_FROM_EMAIL,
            to=[user.email],
            headers={"Auto-Submitted": "auto-generated"},
        ).send()

"""Time zone, time of digests and phone number of a user."""

from datetime import time
from typing import Annotated

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from ninja import Router, Status
from pydantic import BeforeValidator, Field

from tailrace.subscriptions.channels.sms import confirmation
from tailrace.subscriptions.models import Preferences
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.problems import wrong_field
from tailrace.web.api.schemas import In, Out

router = Router()
CODE_COST = 5
"""A code counts as this number of requests towards the rate limit."""
READ, WRITE = Needs("subscriptions:read"), Needs("subscriptions:write")
CODE = Needs("subscriptions:write", cost=CODE_COST)


class PreferencesChange(In):
    """The fields to change. Missing fields are not changed."""

    time_zone: Annotated[str, Field(max_length=64, description="such as Europe/Berlin")] = "UTC"
    digest_at: str = Field("08:00", pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$")
    """Local time of daily and weekly digests, such as 08:00."""
    digest_weekday: int = Field(0, ge=0, le=6, description="day of weekly digests; 0 is Monday")
    phone: str = Field("", max_length=20, description="for texts, such as +4930123456")


class PreferencesOut(Out):
    time_zone: str
    digest_at: Annotated[str, BeforeValidator(lambda at: f"{at:%H:%M}")]
    digest_weekday: int
    phone: str
    phone_confirmed: bool
    """Text messages are sent only to a confirmed number."""


class CodeIn(In):
    code: Annotated[str, Field(max_length=20, description="from the text message")]


@router.get("", auth=READ, response=PreferencesOut, summary="Get preferences")
def get_preferences(request: HttpRequest) -> PreferencesOut:
    return _preferences(caller(request).user)


@router.patch("", auth=WRITE, response=PreferencesOut, summary="Change preferences")
def change_preferences(request: HttpRequest, body: PreferencesChange) -> PreferencesOut:
    user = caller(request).user
    with transaction.atomic():
        Preferences.objects.get_or_create(user=user)
        row = Preferences.objects.select_for_update().get(user=user)
        for name, value in body.model_dump(exclude_unset=True).items():
            setattr(row, name, time.fromisoformat(value) if name == "digest_at" else value)
        row.full_clean(validate_unique=False)
        row.save()
    return PreferencesOut.model_validate(row)


@router.post(
    "/phone/code", auth=CODE, response={202: PreferencesOut}, summary="Send a code to your phone"
)
def send_code(request: HttpRequest) -> Status[PreferencesOut]:
    """The code is sent as a text message, and confirms the number in your preferences."""
    user = caller(request).user
    confirmation.send_code(user)
    return Status(202, _preferences(user))


@router.post(
    "/phone/confirm", auth=CODE, response=PreferencesOut, summary="Confirm your phone number"
)
def confirm_phone(request: HttpRequest, body: CodeIn) -> PreferencesOut:
    """A code is valid for ten minutes and five tries."""
    user = caller(request).user
    try:
        confirmation.confirm(user, body.code)
    except confirmation.PhoneError as error:
        raise wrong_field("code", str(error)) from None
    return _preferences(user)


def _preferences(user: User) -> PreferencesOut:
    row = Preferences.objects.filter(user=user).first()
    return PreferencesOut.model_validate(row or Preferences(user=user))

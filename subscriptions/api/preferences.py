"""preferences: how a user wants to be reached."""

from datetime import time
from typing import Annotated

from django.db import transaction
from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from subscriptions.api.gate import Needs, caller
from subscriptions.api.shapes import In, Out
from subscriptions.models import Preferences

router = Router()

Wall = Annotated[
    str,
    Field(
        pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$",
        description="when digests of days and weeks come, on the clock of the time zone: 08:00",
    ),
]
Weekday = Annotated[int, Field(ge=0, le=6, description="of weekly digests; 0 is Monday")]


class PreferencesChange(In):
    """What is to be otherwise; the rest stays."""

    time_zone: Annotated[str, Field(max_length=64, description="such as Europe/Berlin")] = "UTC"
    digest_at: Wall = "08:00"
    digest_weekday: Weekday = 0
    phone: Annotated[str, Field(max_length=20, description="for texts: +4930123456")] = ""


class PreferencesOut(Out):
    time_zone: str
    digest_at: str
    digest_weekday: int
    phone: str

    @classmethod
    def of(cls, row: Preferences) -> "PreferencesOut":
        return cls(
            time_zone=row.time_zone,
            digest_at=row.digest_at.strftime("%H:%M"),
            digest_weekday=row.digest_weekday,
            phone=row.phone,
        )


@router.get("", auth=Needs("subscriptions:read"), response=PreferencesOut, summary="As they are")
def get_preferences(request: HttpRequest) -> PreferencesOut:
    user = caller(request).user
    row = Preferences.objects.filter(user=user).first()
    return PreferencesOut.of(row or Preferences(user=user))


@router.patch("", auth=Needs("subscriptions:write"), response=PreferencesOut, summary="Change them")
def change_preferences(request: HttpRequest, body: PreferencesChange) -> PreferencesOut:
    user = caller(request).user
    with transaction.atomic():
        Preferences.objects.get_or_create(user=user)
        row = Preferences.objects.select_for_update().get(user=user)
        for name, value in body.model_dump(exclude_unset=True).items():
            setattr(row, name, time.fromisoformat(value) if name == "digest_at" else value)
        row.full_clean(validate_unique=False)
        row.save()
    return PreferencesOut.of(row)

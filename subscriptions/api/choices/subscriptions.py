"""Subscriptions of a user, the options, and previews."""

from datetime import datetime
from typing import Annotated, Literal, cast

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router
from pydantic import BaseModel, Field

from tailrace.environment.suggest import did_you_mean
from tailrace.subscriptions.api.choices.options import Options, options_of
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience.preview import COST as PREVIEW_COST
from tailrace.subscriptions.notifications.audience.preview import MAX_DAYS, preview
from tailrace.subscriptions.notifications.rendering.event_summary import EventSummary, summarize
from tailrace.subscriptions.types.channel import all_channels
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import Problem, find_row, of_model
from tailrace.web.api.schemas import In, Out

router = Router()
READ, WRITE = Needs("subscriptions:read"), Needs("subscriptions:write")
MATRIX = Needs("subscriptions:read", cost=5)
PREVIEW = Needs("subscriptions:read", cost=PREVIEW_COST)

Name = Annotated[str, Field(max_length=200)]
State = Literal["on", "off"]
Pace = Literal["instant", "hourly", "daily", "weekly"]


class SubscriptionIn(In):
    """The events to be notified about, in a role, by a channel."""

    event_type: Annotated[Name, Field(description="an event type, a family or *")]
    role: Name
    channel: Annotated[Name, Field(description="mail, rss, web, webhook, push, sms")]
    state: State = "on"
    pace: Annotated[Pace, Field(description="for mail: at once or in a digest")] = "instant"
    subject_pattern: Annotated[Name, Field(description="only these subjects, such as devel:*")] = ""


class SubscriptionChange(SubscriptionIn):
    """The fields to change. Missing fields are not changed."""

    event_type: Name = ""
    role: Name = ""
    channel: Name = ""


class SubscriptionOut(Out):
    """A subscription of the user; it overrides the default."""

    id: int
    event_type: str
    role: str
    channel: str
    state: str
    pace: str
    subject_pattern: str


class PreviewOut(Out):
    """The events that a subscription would have notified about."""

    since: datetime
    until: datetime
    whole: bool
    """False if there were too many events to examine; then `since` is later."""
    count: int
    events: list[EventSummary]
    """The first events."""


class PreviewParams(BaseModel):
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 7


class OptionsParams(BaseModel):
    event_type: Annotated[Name | None, Field(description="only this event type")] = None


@router.get("", auth=READ, response=Page[SubscriptionOut], summary="List your subscriptions")
def list_subscriptions(request: HttpRequest, params: Query[PageParams]) -> Page[SubscriptionOut]:
    return newest_first(_own(request), params, SubscriptionOut.model_validate)


@router.post("", auth=WRITE, response={201: SubscriptionOut}, summary="Create a subscription")
def make_subscription(
    request: HttpRequest, response: HttpResponse, body: SubscriptionIn
) -> SubscriptionOut:
    """409 if you already have a subscription for this event type, role and channel."""
    row = EventSubscription(user=caller(request).user, **body.model_dump())
    _save(row)
    response["Location"] = reverse("api:get_subscription", args=[row.pk])
    return SubscriptionOut.model_validate(row)


@router.get("/matrix", auth=MATRIX, response=Options, summary="List all options")
def get_matrix(request: HttpRequest, params: Query[OptionsParams]) -> Options:
    """All event types by role and channel, with the default and your own subscription."""
    return options_of(caller(request).user, params.event_type)


@router.post("/preview", auth=PREVIEW, response=PreviewOut, summary="Preview a new subscription")
def preview_unsaved(
    request: HttpRequest, body: SubscriptionIn, params: Query[PreviewParams]
) -> PreviewOut:
    """Nothing is saved; your subscription to the same type, role and channel is ignored."""
    row = EventSubscription(user=caller(request).user, **body.model_dump())
    _check(row, unique=False)
    return _preview_out(row, params.days)


@router.get("/{int:id}", auth=READ, response=SubscriptionOut, summary="Get a subscription")
def get_subscription(request: HttpRequest, id: int) -> SubscriptionOut:
    return SubscriptionOut.model_validate(_find(request, id))


@router.patch("/{int:id}", auth=WRITE, response=SubscriptionOut, summary="Change a subscription")
def change_subscription(request: HttpRequest, id: int, body: SubscriptionChange) -> SubscriptionOut:
    with transaction.atomic():
        row = _find(request, id, lock=True)
        for name, value in body.model_dump(exclude_unset=True).items():
            setattr(row, name, value)
        _save(row)
    return SubscriptionOut.model_validate(row)


@router.delete("/{int:id}", auth=WRITE, response={204: None}, summary="Delete a subscription")
def delete_subscription(request: HttpRequest, id: int) -> None:
    """The default applies again."""
    _find(request, id).delete()


@router.get(
    "/{int:id}/preview", auth=PREVIEW, response=PreviewOut, summary="Preview a subscription"
)
def preview_saved(request: HttpRequest, id: int, params: Query[PreviewParams]) -> PreviewOut:
    """By your current roles."""
    return _preview_out(_find(request, id), params.days)


def _own(request: HttpRequest) -> QuerySet[EventSubscription]:
    return EventSubscription.objects.filter(user=caller(request).user).select_related("user")


def _find(request: HttpRequest, id: int, lock: bool = False) -> EventSubscription:
    rows = _own(request).select_for_update(of=("self",)) if lock else _own(request)
    return find_row(rows, id, "subscription")


def _save(row: EventSubscription) -> None:
    _check(row)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:  # another request created it in the meantime
        raise _already_exists(row) from error


def _check(row: EventSubscription, unique: bool = True) -> None:
    """Raise a problem with all errors of the row."""
    try:
        row.full_clean(validate_unique=unique, validate_constraints=unique)
    except ValidationError as error:
        errors = error.error_dict
        if any(e.code in ("unique", "unique_together") for e in errors.get("__all__", ())):
            raise _already_exists(row) from None
        if row.channel not in (known := all_channels()):
            hint = did_you_mean(row.channel, known)
            errors["channel"] = [ValidationError(f"no channel has this name{hint}")]
        raise of_model(error) from None


def _already_exists(row: EventSubscription) -> Problem:
    detail = f"you already have a subscription for {row.event_type}, {row.role} and {row.channel}"
    return Problem(409, detail, kind="exists")


def _preview_out(row: EventSubscription, days: int) -> PreviewOut:
    user = cast(User, row.user)
    result = preview(row, days, user)
    return PreviewOut.of(result, events=list(summarize(user, result.first).values()))

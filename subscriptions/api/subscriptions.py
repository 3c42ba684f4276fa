"""subscriptions: a user's own rows, all that there is to choose, and previews."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router
from pydantic import BaseModel, Field

from events.suggest import did_you_mean
from subscriptions import channels
from subscriptions.api.briefs import EventBrief, briefs
from subscriptions.api.gate import Needs, caller
from subscriptions.api.matrix import Matrix, matrix
from subscriptions.api.paging import Page, Paged, newest_first
from subscriptions.api.problems import Problem, not_found, of_model
from subscriptions.api.shapes import In, Out
from subscriptions.models import EventSubscription
from subscriptions.preview import DAYS, preview

router = Router()
READ, WRITE = Needs("subscriptions:read"), Needs("subscriptions:write")

Word = Annotated[str, Field(max_length=200)]
State = Literal["on", "off"]
Pace = Literal["instant", "hourly", "daily", "weekly"]


class SubscriptionIn(In):
    """What to hear of, in which role, by which channel."""

    event_type: Annotated[Word, Field(description="an event type, a family of them, or *")]
    role: Word
    channel: Annotated[Word, Field(description="mail, rss, web, webhook, push, sms")]
    state: State = "on"
    pace: Annotated[Pace, Field(description="of mails: at once, or in a digest")] = "instant"
    subject_pattern: Annotated[Word, Field(description="only these subjects: devel:*")] = ""


class SubscriptionChange(In):
    """What is to be otherwise; the rest stays."""

    event_type: Word = ""
    role: Word = ""
    channel: Word = ""
    state: State = "on"
    pace: Pace = "instant"
    subject_pattern: Word = ""


class SubscriptionOut(Out):
    """A row of one's own, which beats the default."""

    id: int
    event_type: str
    role: str
    channel: str
    state: str
    pace: str
    subject_pattern: str


class PreviewOut(Out):
    """What a row would have brought."""

    since: datetime
    until: datetime
    whole: bool
    """Whether all the days were looked at; if there were too many events, `since` is later."""
    count: int
    events: list[EventBrief]
    """The first of them."""


class Days(BaseModel):
    days: Annotated[int, Field(ge=1, le=DAYS)] = 7


class MatrixAsked(BaseModel):
    event_type: Annotated[Word | None, Field(description="only this event type")] = None


@router.get("", auth=READ, response=Page[SubscriptionOut], summary="One's own rows")
def list_subscriptions(request: HttpRequest, asked: Query[Paged]) -> Page[SubscriptionOut]:
    return newest_first(_own(caller(request).user), asked, SubscriptionOut.model_validate)


@router.post("", auth=WRITE, response={201: SubscriptionOut}, summary="Make a row")
def make_subscription(
    request: HttpRequest, response: HttpResponse, body: SubscriptionIn
) -> SubscriptionOut:
    """409 if there is one of this type, role and channel: change that one."""
    row = EventSubscription(user=caller(request).user, **body.model_dump())
    _save(row)
    response["Location"] = reverse("api:get_subscription", args=[row.pk])
    return SubscriptionOut.model_validate(row)


@router.get("/matrix", auth=READ, response=Matrix, summary="All there is to choose")
def get_matrix(request: HttpRequest, asked: Query[MatrixAsked]) -> Matrix:
    """Each event type that is heard of, by role and channel: the default, and one's own choice."""
    return matrix(caller(request).user, asked.event_type)


@router.post("/preview", auth=READ, response=PreviewOut, summary="What a row would have brought")
def preview_unsaved(request: HttpRequest, body: SubscriptionIn, asked: Query[Days]) -> PreviewOut:
    """The row is not kept; it takes the place of one's row of its type, role and channel."""
    user = caller(request).user
    row = EventSubscription(user=user, **body.model_dump())
    _check(row, unique=False)
    return _previewed(row, asked.days, user)


@router.get("/{int:id}", auth=READ, response=SubscriptionOut, summary="One row")
def get_subscription(request: HttpRequest, id: int) -> SubscriptionOut:
    return SubscriptionOut.model_validate(_find(caller(request).user, id))


@router.patch("/{int:id}", auth=WRITE, response=SubscriptionOut, summary="Change a row")
def change_subscription(request: HttpRequest, id: int, body: SubscriptionChange) -> SubscriptionOut:
    with transaction.atomic():
        row = _find(caller(request).user, id, lock=True)
        for name, value in body.model_dump(exclude_unset=True).items():
            setattr(row, name, value)
        _save(row)
    return SubscriptionOut.model_validate(row)


@router.delete("/{int:id}", auth=WRITE, response={204: None}, summary="Delete a row")
def delete_subscription(request: HttpRequest, id: int) -> None:
    """From then on the default counts again."""
    _find(caller(request).user, id).delete()


@router.get("/{int:id}/preview", auth=READ, response=PreviewOut, summary="What a row has brought")
def preview_saved(request: HttpRequest, id: int, asked: Query[Days]) -> PreviewOut:
    """The roles are asked as they are held now."""
    user = caller(request).user
    return _previewed(_find(user, id), asked.days, user)


def _own(user: User) -> Any:
    return EventSubscription.objects.filter(user=user)


def _find(user: User, id: int, lock: bool = False) -> EventSubscription:
    rows = _own(user).select_for_update() if lock else _own(user)
    row: EventSubscription | None = rows.filter(pk=id).first()
    if row is None:
        raise not_found("subscription")
    return row


def _save(row: EventSubscription) -> None:
    _check(row)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:  # another request was quicker
        raise _exists(row) from error


def _check(row: EventSubscription, unique: bool = True) -> None:
    """Raise a problem that names all that is wrong with the row."""
    try:
        row.full_clean(validate_unique=unique, validate_constraints=unique)
    except ValidationError as error:
        found = error.error_dict
        if any(one.code in ("unique", "unique_together") for one in found.get("__all__", ())):
            raise _exists(row) from None
        if row.channel not in (known := channels.everything()):
            hint = did_you_mean(row.channel, known)
            found["channel"] = [ValidationError(f"no channel has this name{hint}")]
        raise of_model(error) from None


def _exists(row: EventSubscription) -> Problem:
    return Problem(
        409, f"you have a row for {row.event_type}, {row.role} and {row.channel}", kind="exists"
    )


def _previewed(row: EventSubscription, days: int, user: User) -> PreviewOut:
    found = preview(row, days)
    lines = briefs(user, found.first)
    return PreviewOut(
        since=found.since,
        until=found.until,
        whole=found.whole,
        count=found.count,
        events=[lines[event.id] for event in found.first if event.id in lines],
    )

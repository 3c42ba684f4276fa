"""Watched properties and their changes in the API."""

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from tailrace.domains.protection.alerts.texts import severity_words
from tailrace.domains.protection.models import PropertyChange, WatchedProperty
from tailrace.domains.protection.services.properties import watch
from tailrace.domains.protection.services.properties.advice import advice
from tailrace.domains.protection.services.properties.places import InvalidPlace, place_of
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import Problem, find_row, not_found, wrong_field
from tailrace.web.api.schemas import In, Out

READ, WRITE = Needs("protection:read"), Needs("protection:write")
router = Router()


class PropertyIn(In):
    """Either block and lot, or street_number and street_name."""

    borough: int
    """1 Manhattan, 2 Bronx, 3 Brooklyn, 4 Queens, 5 Staten Island."""
    block: int | None = None
    lot: int | None = None
    street_number: Annotated[str, Field(max_length=20)] = ""
    street_name: Annotated[str, Field(max_length=80)] = ""
    unit: Annotated[str, Field(max_length=20)] = ""
    """Without a unit the whole building is watched."""


class PropertyOut(Out):
    id: int
    title: str
    source: str
    borough: int
    block: int | None
    lot: int | None
    street_number: str
    street_name: str
    unit: str
    created_at: datetime
    scanned_at: datetime | None
    records_until: str
    """The date up to which the public records are complete; empty if it is unknown."""
    complete: bool
    """False if the property has more documents than the maximum; then only the newest are
    watched."""


class PropertyChangeOut(Out):
    id: int
    document_id: str
    kind: str
    severity: str
    """info, warning or critical."""
    title: str
    to_do: str
    noticed_at: datetime
    details: dict[str, Any]
    """Type, dates, amount and names in the document."""


@router.get("", auth=READ, response=Page[PropertyOut], summary="List your properties")
def list_properties(request: HttpRequest, query: Query[PageParams]) -> Page[PropertyOut]:
    """Newest first."""
    return newest_first(_rows(request), query, _out)


@router.post("", auth=WRITE, response={201: PropertyOut}, summary="Watch a property")
def add_property(request: HttpRequest, body: PropertyIn) -> Status[PropertyOut]:
    """If the property is watched already, it is returned unchanged."""
    try:
        row = watch.add(caller(request).user.pk, place_of(**body.model_dump()))
    except InvalidPlace as error:
        raise wrong_field(error.field, str(error)) from None
    except watch.TooManyProperties as error:
        raise Problem(409, str(error), kind="too-many") from None
    return Status(201, _out(_rows(request).get(pk=row.pk)))


@router.get("/{int:id}", auth=READ, response=PropertyOut, summary="Get one property")
def get_property(request: HttpRequest, id: int) -> PropertyOut:
    return _out(find_row(_rows(request), id, "property"))


@router.delete("/{int:id}", auth=WRITE, response={204: None}, summary="Stop watching a property")
def remove_property(request: HttpRequest, id: int) -> Status[None]:
    """Also deletes its history."""
    if not watch.remove(caller(request).user.pk, id):
        raise not_found("property")
    return Status(204, None)


@router.get(
    "/{int:id}/changes",
    auth=READ,
    response=Page[PropertyChangeOut],
    summary="List the changes of a property",
)
def list_changes(
    request: HttpRequest, id: int, query: Query[PageParams]
) -> Page[PropertyChangeOut]:
    """Newest first."""
    row = find_row(_rows(request), id, "property")
    return newest_first(PropertyChange.objects.filter(property=row.pk), query, _change_out)


def _rows(request: HttpRequest) -> Any:
    rows = WatchedProperty.objects.filter(user=caller(request).user)
    return rows.select_related("snapshot").defer("snapshot__documents")


def _out(row: WatchedProperty) -> PropertyOut:
    snapshot = getattr(row, "snapshot", None)
    return PropertyOut.of(
        row,
        records_until=snapshot.watermark[:10] if snapshot else "",
        complete=snapshot.complete if snapshot else True,
    )


def _change_out(row: PropertyChange) -> PropertyChangeOut:
    words = advice(row.kind, row.severity)
    severity = severity_words(row.severity)
    return PropertyChangeOut.of(row, severity=severity, title=words.title, to_do=words.to_do)

"""Exposures in the API."""

from django.http import HttpRequest
from ninja import Query, Router

from tailrace.domains.protection.alerts.advice import advice
from tailrace.domains.protection.alerts.texts import severity_words
from tailrace.domains.protection.api.schemas import ExposureChangeIn, ExposureOut, ExposuresQuery
from tailrace.domains.protection.models import Exposure
from tailrace.domains.protection.services.exposures import moves
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Page, newest_first
from tailrace.web.api.problems import find_row

READ, WRITE = Needs("protection:read"), Needs("protection:write")
router = Router()


@router.get("", auth=READ, response=Page[ExposureOut], summary="List your exposures")
def list_exposures(request: HttpRequest, query: Query[ExposuresQuery]) -> Page[ExposureOut]:
    """Newest first."""
    rows = Exposure.objects.filter(user=caller(request).user).select_related("item", "breach")
    if query.state is not None:
        rows = rows.filter(state=query.state)
    return newest_first(rows, query, _exposure)


@router.patch("/{int:id}", auth=WRITE, response=ExposureOut, summary="Mark an exposure")
def change_exposure(request: HttpRequest, id: int, body: ExposureChangeIn) -> ExposureOut:
    user = caller(request).user
    moves.move(user.pk, [id], body.state)
    rows = Exposure.objects.filter(user=user).select_related("item", "breach")
    return _exposure(find_row(rows, id, "exposure"))


def _exposure(row: Exposure) -> ExposureOut:
    breach = row.breach
    return ExposureOut.of(
        row,
        item=row.item_id,
        masked=row.item.masked,
        severity=severity_words(row.severity),
        breach=breach.title,
        domain=breach.domain,
        breached_on=breach.breached_on,
        data_classes=[str(name) for name in breach.data_classes],
        to_do=advice(breach.data_classes),
    )

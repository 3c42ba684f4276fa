"""Gatherings in the API."""

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router

from tailrace.domains.photos.api.schemas import GatheringFilter, GatheringOut
from tailrace.domains.photos.models import Gathering
from tailrace.web.api.auth import Needs
from tailrace.web.api.pagination import Page, newest_first
from tailrace.web.api.problems import not_found

READ = Needs("photos:read")
router = Router()


@router.get("", auth=READ, response=Page[GatheringOut], summary="List gatherings")
def list_gatherings(request: HttpRequest, query: Query[GatheringFilter]) -> Page[GatheringOut]:
    """Newest first."""
    gatherings = Gathering.objects.placed()
    if query.state:
        gatherings = gatherings.filter(state=query.state)
    return newest_first(gatherings, query, _gathering)


@router.get("/{int:id}", auth=READ, response=GatheringOut, summary="Get one gathering")
def get_gathering(request: HttpRequest, id: int) -> GatheringOut:
    gathering = Gathering.objects.placed().filter(pk=id).first()
    if gathering is None:
        raise not_found("gathering")
    return _gathering(gathering)


def _gathering(gathering: Gathering) -> GatheringOut:
    place = {name: getattr(gathering, f"shown_{name}") for name in ("lat", "lon", "radius")}
    names = GatheringOut.model_fields.keys() - place.keys() - {"url"}
    values = {name: getattr(gathering, name) for name in names}
    url = f"{settings.PUBLIC_URL}/api/gatherings/{gathering.pk}"
    return GatheringOut(url=url, **values, **place)

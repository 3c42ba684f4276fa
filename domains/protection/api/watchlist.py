"""The watchlist in the API. It accepts values and returns only their masked form."""

from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables
from ninja import Query, Router, Status

from tailrace.domains.protection.api.schemas import ItemChangeIn, ItemIn, ItemOut
from tailrace.domains.protection.models import WatchlistItem
from tailrace.domains.protection.services.watchlist import items
from tailrace.domains.protection.services.watchlist.values import InvalidValue
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import Problem, find_row, not_found, wrong_field

READ, WRITE = Needs("protection:read"), Needs("protection:write")
router = Router()


@router.get("", auth=READ, response=Page[ItemOut], summary="List your watchlist")
def list_items(request: HttpRequest, query: Query[PageParams]) -> Page[ItemOut]:
    """Newest first."""
    rows = WatchlistItem.objects.filter(user=caller(request).user)
    return newest_first(rows, query, ItemOut.model_validate)


@router.post("", auth=WRITE, response={201: ItemOut}, summary="Watch a value")
@sensitive_variables()
def add_item(request: HttpRequest, body: ItemIn) -> Status[ItemOut]:
    """If the value is watched already, its existing item is returned."""
    try:
        item = items.add(caller(request).user.pk, body.kind, body.value)
    except InvalidValue as error:
        raise wrong_field("value", str(error)) from None
    except items.TooManyItems as error:
        raise Problem(409, str(error), kind="too-many") from None
    return Status(201, ItemOut.model_validate(item))


@router.patch("/{int:id}", auth=WRITE, response=ItemOut, summary="Pause or resume a value")
def change_item(request: HttpRequest, id: int, body: ItemChangeIn) -> ItemOut:
    user = caller(request).user
    items.set_active(user.pk, id, body.active)
    return ItemOut.model_validate(find_row(WatchlistItem.objects.filter(user=user), id, "item"))


@router.delete("/{int:id}", auth=WRITE, response={204: None}, summary="Stop watching a value")
def remove_item(request: HttpRequest, id: int) -> Status[None]:
    """Also deletes its exposures."""
    if not items.remove(caller(request).user.pk, id):
        raise not_found("item")
    return Status(204, None)

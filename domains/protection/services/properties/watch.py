"""Add properties to the watched properties of an account, and remove them."""

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from tailrace.domains.protection.models import WatchedProperty
from tailrace.domains.protection.services.properties.places import Place

FIRST_SOURCE = "acris"


class TooManyProperties(Exception):
    """The account has its maximum of properties, which the message names."""


def add(user_id: int, place: Place, source: str = FIRST_SOURCE) -> tuple[WatchedProperty, bool]:
    """Watch this place; return its row, and whether the row is new. Raises TooManyProperties."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(
            pk=user_id
        )  # one at a time, so that the maximum holds
        rows = WatchedProperty.objects.filter(user=user_id)
        if (old := rows.filter(source=source, key=place.key).first()) is not None:
            return old, False
        most = settings.PROTECTION_MAX_PROPERTIES_PER_USER
        if rows.count() >= most:
            raise TooManyProperties(
                f"You watch {most} properties, the maximum: remove one first"
                " (PROTECTION_MAX_PROPERTIES_PER_USER)."
            )
        row = WatchedProperty.objects.create(
            user_id=user_id,
            source=source,
            borough=place.borough,
            block=place.block,
            lot=place.lot,
            street_number=place.street_number,
            street_name=place.street_name,
            unit=place.unit,
            key=place.key,
            place_key=place.place_key,
        )
        return row, True


def remove(user_id: int, property_id: int) -> bool:
    """Delete the property with its history; return whether it existed."""
    return bool(WatchedProperty.objects.filter(user=user_id, pk=property_id).delete()[0])


def place_of(row: WatchedProperty) -> Place:
    return Place(row.borough, row.block, row.lot, row.street_number, row.street_name, row.unit)

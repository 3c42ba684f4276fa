"""Add properties to the watched properties of an account, and remove them."""

from dataclasses import asdict

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from tailrace.domains.protection.models import WatchedProperty
from tailrace.domains.protection.services.properties.places import Place

SOURCE = "acris"


class TooManyProperties(Exception):
    """The account has its maximum of properties, which the message names."""


def add(user_id: int, place: Place) -> WatchedProperty:
    """Watch this place; return its row. Raises TooManyProperties."""
    with transaction.atomic():
        # One at a time, so that the maximum holds.
        User.objects.select_for_update(no_key=True).get(pk=user_id)
        rows = WatchedProperty.objects.filter(user=user_id)
        if (old := rows.filter(source=SOURCE, key=place.key).first()) is not None:
            return old
        most = settings.PROTECTION_MAX_PROPERTIES_PER_USER
        if rows.count() >= most:
            raise TooManyProperties(
                f"You watch {most} properties, the maximum: remove one first"
                " (PROTECTION_MAX_PROPERTIES_PER_USER)."
            )
        keys = {"key": place.key, "place_key": place.place_key}
        return WatchedProperty.objects.create(
            user_id=user_id, source=SOURCE, **asdict(place), **keys
        )


def remove(user_id: int, property_id: int) -> bool:
    """Delete the property with its history; return whether it existed."""
    return bool(WatchedProperty.objects.filter(user=user_id, pk=property_id).delete()[0])

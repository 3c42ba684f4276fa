"""Objects of a user in this domain, for tests that request every address."""

from typing import Any

from django.contrib.auth.models import User

from tailrace.domains.protection.models import (
    Alert,
    PropertyChange,
    Recording,
    RemovalRequest,
    Report,
    VoiceEnrolment,
    WatchedProperty,
)
from tests.protection.kit import fill_protection


def owned_objects(owner: User) -> dict[str, Any]:
    exposure = fill_protection(owner)
    return {
        "watchlist": exposure.item_id,
        "watchlistitem": exposure.item_id,
        "exposures": exposure.pk,
        "exposure": exposure.pk,
        "breach": exposure.breach_id,
        "recordings": Recording.objects.get(user=owner).pk,
        "voices": VoiceEnrolment.objects.get(user=owner).pk,
        "recording": Recording.objects.get(user=owner).pk,
        "reports": Report.objects.get(user=owner).pk,
        "report": Report.objects.get(user=owner).pk,
        "alert": Alert.objects.filter(user=owner).latest("pk").pk,
        "removals": RemovalRequest.objects.get(user=owner).pk,
        "removalrequest": RemovalRequest.objects.get(user=owner).pk,
        "properties": WatchedProperty.objects.get(user=owner).pk,
        "watchedproperty": WatchedProperty.objects.get(user=owner).pk,
        "propertychange": PropertyChange.objects.get(property__user=owner).pk,
    }

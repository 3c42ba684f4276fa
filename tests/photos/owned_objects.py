"""Objects of a user in this domain, for tests that request every address."""

from typing import Any

from django.contrib.auth.models import User

from tests.photos.pictures import make_gathering


def owned_objects(owner: User) -> dict[str, Any]:
    gathering = make_gathering(owner)
    photo = gathering.photos.get()
    return {
        "photos": photo.pk,
        "photo": photo.pk,
        "gatherings": gathering.pk,
        "gathering": gathering.pk,
    }

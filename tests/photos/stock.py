"""What a user has of this domain, for tests that ask every address."""

from typing import Any

from django.contrib.auth.models import User

from tests.photos.scene import gather


def stock(owner: User) -> dict[str, Any]:
    found = gather(owner)
    photo = found.photos.get()
    return {
        "photos": photo.pk,
        "photo": photo.pk,
        "gatherings": found.pk,
        "gathering": found.pk,
    }

"""Which users may see which photos.

Users see their own photos. They see photos of other users that are in a gathering, but not their
exact locations. Users with the permission `tailrace_photos.view_photo` see everything.
"""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from tailrace.domains.photos.models import Photo
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers

VIEW_ALL = "tailrace_photos.view_photo"
_BACKEND = "django.contrib.auth.backends.ModelBackend"


def visible_photos(user: User) -> QuerySet[Photo]:
    """Return the photos that the user may see."""
    if user.has_perm(VIEW_ALL):
        return Photo.objects.all()
    return Photo.objects.filter(Q(user=user) | Q(gathering__isnull=False))


def may_see_location(user: User, photo: Photo) -> bool:
    """Return whether the user may see the photo's exact location and its storage key."""
    return photo.user_id == user.pk or user.has_perm(VIEW_ALL)


def readers_of_uploads(events: Iterable[Recorded]) -> dict[int, Readers | None]:
    """Return the users who may read each `photos.uploaded`, which has the exact location."""
    photo_of: dict[int, int] = {event.id: event.raw_payload["photo"] for event in events}
    photos = Photo.objects.filter(pk__in=set(photo_of.values()), user__isnull=False)
    owner_of = dict(photos.values_list("pk", "user__username"))
    viewers = User.objects.with_perm(VIEW_ALL, backend=_BACKEND)
    names = list(viewers.values_list("username", flat=True))
    return {id: Readers.of([*names, owner_of.get(photo, "")]) for id, photo in photo_of.items()}

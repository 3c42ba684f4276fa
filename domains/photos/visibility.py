"""Who may see which photos.

Users see their own photos. They see the photos of others once these are in a gathering, but not
where exactly they were taken. The permission `photos.view_photo` shows everything.
"""

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from domains.photos.models import Photo

VIEW_ALL = "photos.view_photo"


def visible_photos(user: User) -> QuerySet[Photo]:
    """Return the photos that the user may see."""
    if user.has_perm(VIEW_ALL):
        return Photo.objects.all()
    return Photo.objects.filter(Q(user=user) | Q(gathering__isnull=False))


def may_see_location(user: User, photo: Photo) -> bool:
    """Return whether the user may see where it was taken, and its storage key."""
    return photo.user_id == user.pk or user.has_perm(VIEW_ALL)

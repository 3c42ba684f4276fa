"""sight: who may see which photos.

One's own, always. Of others those that are in a gathering, for everybody who is signed in, without
where exactly they were taken. All, with the permission `photos.view_photo`.
"""

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from domains.photos.models import Photo

SEES_ALL = "photos.view_photo"


def seen_by(user: User) -> QuerySet[Photo]:
    """Return the photos that the user may see."""
    if user.has_perm(SEES_ALL):
        return Photo.objects.all()
    return Photo.objects.filter(Q(user=user) | Q(gathering__isnull=False))


def sees_place(user: User, photo: Photo) -> bool:
    """Say whether the user may know where exactly it was taken, and under which key it is kept."""
    return photo.user_id == user.pk or user.has_perm(SEES_ALL)

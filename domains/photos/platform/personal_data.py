"""Personal data in photos."""

from django.contrib.auth.models import User

from tailrace.domains.photos.uploads.deletion.delete_photos import (
    delete_some_of,
    delete_uploads_of,
    erase_requests_of,
)
from tailrace.web.accounts.personal_data import PersonalData


class Photos(PersonalData):
    """Photos with their pictures, locations and times, and their part in gatherings."""

    def delete(self, user: User) -> int:
        return delete_some_of(user.pk) or delete_uploads_of(user.pk) or erase_requests_of(user.pk)

"""What the photos domain keeps."""

from domains.photos.models.gathering import Gathering
from domains.photos.models.photo import Photo

__all__ = ["Gathering", "Photo"]

"""The tables of photos."""

from tailrace.domains.photos.models.file_deletion import FileDeletion
from tailrace.domains.photos.models.gathering import Gathering
from tailrace.domains.photos.models.photo import Photo
from tailrace.domains.photos.models.upload import Upload

__all__ = ["FileDeletion", "Gathering", "Photo", "Upload"]

"""The tables of photos."""

from domains.photos.models.file_deletion import FileDeletion
from domains.photos.models.gathering import Gathering
from domains.photos.models.photo import Photo
from domains.photos.models.upload import Upload

__all__ = ["FileDeletion", "Gathering", "Photo", "Upload"]

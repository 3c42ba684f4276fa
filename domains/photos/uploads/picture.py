"""Read an uploaded picture: check it, read its EXIF, and make a small copy.

The copy is a JPEG in any case, and contains no place, time or camera.
"""

import threading
import warnings
from dataclasses import dataclass, field
from datetime import tzinfo
from io import BytesIO
from typing import IO

from PIL import Image, ImageOps, UnidentifiedImageError

from domains.photos.uploads.exif import Exif, read_exif

FORMATS = ("JPEG", "PNG", "WEBP")
SUFFIXES = {"JPEG": ".jpg", "MPO": ".jpg", "PNG": ".png", "WEBP": ".webp"}
"""File suffix by Pillow's format. MPO is a JPEG with a second picture, as some phones write."""
COPY_SIZE = (1280, 1280)
COPY_TYPE = "image/jpeg"
_decoding = threading.BoundedSemaphore(2)
"""Pictures that a process decodes at the same time: each may take some hundred megabytes."""


class InvalidPicture(ValueError):
    """The file is not a picture that can be used; the message says why."""


@dataclass(slots=True)
class Picture:
    """What was read from a picture's file."""

    suffix: str
    copy: bytes
    exif: Exif = field(default_factory=Exif)


def read_picture(file: IO[bytes], zone: tzinfo, max_megapixels: float) -> Picture:
    """Return the picture; times without a zone are taken to be in `zone`.

    Raises InvalidPicture for a file that is not a picture, is cut off or has too many pixels. The
    pixels are counted before they are decoded.
    """
    file.seek(0)
    try:
        with _decoding, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of many pixels; they are counted below
            with Image.open(file, formats=FORMATS) as image:
                return _read(image, zone, max_megapixels)
    except InvalidPicture:
        raise
    except Image.DecompressionBombError:
        raise InvalidPicture(_too_many_pixels("too many", max_megapixels)) from None
    except UnidentifiedImageError:
        raise InvalidPicture("not a supported picture; send JPEG, PNG or WebP") from None
    except Exception as error:  # Pillow raises errors of any type for damaged files
        reason = str(error)[:60] or type(error).__name__
        raise InvalidPicture(f"the picture is damaged and cannot be read: {reason}") from None


def _read(image: Image.Image, zone: tzinfo, max_megapixels: float) -> Picture:
    width, height = image.size
    if width * height > max_megapixels * 1_000_000:
        raise InvalidPicture(_too_many_pixels(f"{width} × {height}", max_megapixels))
    exif = read_exif(image, zone)
    return Picture(SUFFIXES[image.format or ""], _small_copy(image), exif)


def _too_many_pixels(pixels: str, limit: float) -> str:
    return f"it has {pixels} pixels; the limit is {limit:g} million (PHOTOS_MAX_MEGAPIXELS)"


def _small_copy(image: Image.Image) -> bytes:
    image.draft("RGB", COPY_SIZE)
    image.thumbnail(COPY_SIZE)
    upright = ImageOps.exif_transpose(image)
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        upright = upright.convert("RGBA")
        background = Image.new("RGBA", upright.size, "white")
        upright = Image.alpha_composite(background, upright)
    copy = Image.new("RGB", upright.size)  # takes over the pixels and no metadata
    copy.paste(upright.convert("RGB"))
    out = BytesIO()
    copy.save(out, "JPEG", quality=82, optimize=True)
    return out.getvalue()

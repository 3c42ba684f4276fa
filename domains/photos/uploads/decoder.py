"""Decode one picture in a process of its own:
`python -m tailrace.domains.photos.uploads.decoder LIMITS`.

Standard input is the picture's file, open for seeking; LIMITS is a JSON object with the fields of
Limits. Standard output gets a line of JSON: `suffix` and `exif` (`values`, `errors`), followed by
the small copy, or `error` alone. The process limits its own time and memory before it reads a byte.
It imports neither Django nor settings: it starts within 0.05 s and knows no secrets.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import warnings
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import IO, Any

from PIL import Image, ImageOps, UnidentifiedImageError

from tailrace.domains.photos.uploads.exif import read_exif
from tailrace.domains.photos.uploads.jpeg_scans import count_scans

FORMATS = ("JPEG", "PNG", "WEBP")
SUFFIXES = {"JPEG": ".jpg", "MPO": ".jpg", "PNG": ".png", "WEBP": ".webp"}
"""File suffix by Pillow's format. MPO is a JPEG with a second picture, as some phones write."""
ANIMATED = ("PNG", "WEBP")
"""Formats whose further pictures would be an animation."""
COPY_SIZE = (1280, 1280)
MAX_SCANS = 50
"""Of a JPEG: each goes over the whole picture again. Cameras and programs write at most a dozen."""
BASE_BYTES = 200_000_000
"""Address space of Python, Pillow and a small picture."""
FILE_COPIES = 3
"""Copies of the file that may be in memory."""
BYTES_PER_PIXEL = 20
"""Memory while a pixel is decoded. A WebP, the worst, takes 17 bytes, a progressive JPEG 9."""
PR_SET_PDEATHSIG = 1


class InvalidPicture(ValueError):
    """The file is not a picture that can be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process may use."""

    parent: int
    """The process that started it, and with which it ends."""
    seconds: int
    """CPU time."""
    wall_seconds: int
    megapixels: int


def main(limits: Limits) -> None:
    """Decode standard input to standard output."""
    limit_process(limits)
    try:
        header, copy = decode(sys.stdin.buffer, limits.megapixels)
    except InvalidPicture as error:
        header, copy = {"error": str(error)}, b""
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + copy)


def limit_process(limits: Limits) -> None:
    """End this process by a signal at its limits, and with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != limits.parent:  # it had ended before
        sys.exit("the parent process has ended")
    signal.setitimer(signal.ITIMER_REAL, limits.wall_seconds)  # SIGALRM, even without a parent
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # it writes to its pipe alone
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = BASE_BYTES + FILE_COPIES * os.fstat(0).st_size
    memory += BYTES_PER_PIXEL * 1_000_000 * limits.megapixels
    with contextlib.suppress(ValueError, OSError):  # macOS does not limit the address space
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    os.nice(5)


def decode(file: IO[bytes], max_megapixels: int) -> tuple[dict[str, Any], bytes]:
    """Return the header of the output and the small copy.

    Pixels, pictures and scans are counted before they are decoded. Raises InvalidPicture.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of many pixels; they are counted below
            with Image.open(file, formats=FORMATS) as image:
                _check(image, file, max_megapixels)
                header = {"suffix": SUFFIXES[image.format or ""], "exif": asdict(read_exif(image))}
                return header, _small_copy(image)
    except InvalidPicture:
        raise
    except Image.DecompressionBombError:
        raise InvalidPicture(_too_many_pixels("too many", max_megapixels)) from None
    except UnidentifiedImageError:
        raise InvalidPicture("not a supported picture; send JPEG, PNG or WebP") from None
    except MemoryError:
        raise InvalidPicture(
            "the picture takes more memory than"
            f" {max_megapixels} million pixels need (PHOTOS_MAX_MEGAPIXELS)"
        ) from None
    except Exception as error:  # Pillow raises errors of any type for damaged files
        reason = str(error)[:60] or type(error).__name__
        raise InvalidPicture(f"the picture is damaged and cannot be read: {reason}") from None


def _check(image: Image.Image, file: IO[bytes], max_megapixels: int) -> None:
    width, height = image.size
    if width * height > max_megapixels * 1_000_000:
        raise InvalidPicture(_too_many_pixels(f"{width} × {height}", max_megapixels))
    frames = getattr(image, "n_frames", 1)
    if image.format in ANIMATED and frames > 1:
        raise InvalidPicture(f"it is an animation of {frames} pictures; send a single one")
    if image.format not in ANIMATED:
        position = file.tell()
        file.seek(0)
        scans = count_scans(file.read(), MAX_SCANS + 1)
        file.seek(position)
        if scans > MAX_SCANS:
            raise InvalidPicture(
                f"this JPEG has more than {MAX_SCANS} scans;"
                " save it again as an ordinary or progressive JPEG"
            )


def _too_many_pixels(pixels: str, limit: int) -> str:
    return f"it has {pixels} pixels; the limit is {limit} million (PHOTOS_MAX_MEGAPIXELS)"


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


if __name__ == "__main__":
    main(Limits(**json.loads(sys.argv[1])))

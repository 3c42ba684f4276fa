"""The process that decodes one picture: `python -m (this module) LIMITS`.

Standard input is the picture's file, which must be seekable; LIMITS is a JSON object with the
fields of Limits. Standard output gets a line of JSON, either with `suffix` and `exif` (`values`,
`errors`) and followed by the small copy, or with only `error`. The process limits its own time and
memory before it reads a byte. It imports neither Django nor settings: it starts within 0.05 s and
has no secrets.
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

from tailrace.domains.photos.uploads.pictures.exif import read_exif
from tailrace.domains.photos.uploads.pictures.jpeg_scans import count_scans

FORMATS = ("JPEG", "PNG", "WEBP")
SUFFIXES = {"JPEG": ".jpg", "MPO": ".jpg", "PNG": ".png", "WEBP": ".webp"}
"""File suffix by Pillow's format. MPO, which some phones write, is a JPEG with a second picture."""
ANIMATED = ("PNG", "WEBP")
"""Formats in which several pictures are an animation."""
COPY_SIZE = (1280, 1280)
MAX_SCANS = 50
"""Maximum scans of a JPEG. Decoding a scan takes as long as decoding a whole picture. Cameras and
programs write at most a dozen."""
BASE_BYTES = 200_000_000
"""Address space of Python, Pillow and a small picture."""
FILE_COPIES = 3
"""Maximum copies of the file in memory."""
BYTES_PER_PIXEL = 20
"""Memory per pixel while decoding. A WebP, the worst case, takes 17 bytes, a progressive JPEG 9."""
PR_SET_PDEATHSIG = 1


class InvalidPicture(ValueError):
    """The file is not a usable picture; the message states the reason."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the process."""

    parent: int
    """Id of the parent process. The decoder ends with its parent."""
    seconds: int
    """CPU time."""
    wall_seconds: int
    megapixels: int


def main(limits: Limits) -> None:
    """Decode the picture from standard input, and write the result to standard output."""
    limit_process(limits)
    try:
        header, copy = decode(sys.stdin.buffer, limits.megapixels)
    except InvalidPicture as error:
        header, copy = {"error": str(error)}, b""
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + copy)


def limit_process(limits: Limits) -> None:
    """Make signals end this process when it exceeds its limits, or when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != limits.parent:  # the parent ended before prctl
        sys.exit("the parent process has ended")
    signal.setitimer(signal.ITIMER_REAL, limits.wall_seconds)  # SIGALRM
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # it writes no files
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = BASE_BYTES + FILE_COPIES * os.fstat(0).st_size
    memory += BYTES_PER_PIXEL * 1_000_000 * limits.megapixels
    with contextlib.suppress(ValueError, OSError):  # macOS does not limit the address space
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    os.nice(5)


def decode(file: IO[bytes], max_megapixels: int) -> tuple[dict[str, Any], bytes]:
    """Return the header of the output, and the small copy.

    The limits of pixels, pictures and scans are checked before decoding. Raises InvalidPicture.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of many pixels; _check counts them
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
        limit = f"a picture of {max_megapixels} million pixels (PHOTOS_MAX_MEGAPIXELS)"
        raise InvalidPicture(f"decoding the picture takes more memory than {limit}") from None
    except Exception as error:  # Pillow raises exceptions of any type for damaged files
        reason = str(error)[:60] or type(error).__name__
        raise InvalidPicture(f"the picture is damaged and cannot be read: {reason}") from None


def _check(image: Image.Image, file: IO[bytes], max_megapixels: int) -> None:
    width, height = image.size
    if width * height > max_megapixels * 1_000_000:
        raise InvalidPicture(_too_many_pixels(f"{width} × {height}", max_megapixels))
    frames = getattr(image, "n_frames", 1)
    if image.format in ANIMATED and frames > 1:
        text = f"the file is an animation of {frames} pictures; send a single picture"
        raise InvalidPicture(text)
    if image.format not in ANIMATED:
        position = file.tell()
        file.seek(0)
        scans = count_scans(file.read(), MAX_SCANS + 1)
        file.seek(position)
        if scans > MAX_SCANS:
            advice = "save it again as an ordinary or progressive JPEG"
            raise InvalidPicture(f"this JPEG has more than {MAX_SCANS} scans; {advice}")


def _too_many_pixels(pixels: str, limit: int) -> str:
    return f"the picture has {pixels} pixels; the limit is {limit} million (PHOTOS_MAX_MEGAPIXELS)"


def _small_copy(image: Image.Image) -> bytes:
    image.draft("RGB", COPY_SIZE)
    image.thumbnail(COPY_SIZE)
    upright = ImageOps.exif_transpose(image)
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        upright = upright.convert("RGBA")
        background = Image.new("RGBA", upright.size, "white")
        upright = Image.alpha_composite(background, upright)
    copy = Image.new("RGB", upright.size)  # copies the pixels without metadata
    copy.paste(upright.convert("RGB"))
    out = BytesIO()
    copy.save(out, "JPEG", quality=82, optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main(Limits(**json.loads(sys.argv[1])))

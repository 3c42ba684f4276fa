"""Pictures that take far more to decode than to send."""

from functools import cache
from io import BytesIO

from PIL import Image


@cache
def progressive_jpeg(side: int, repeats: int) -> bytes:
    """Return a square progressive JPEG whose last scan is repeated so many times."""
    out = BytesIO()
    Image.new("L", (side, side), "teal").save(out, "JPEG", progressive=True)
    whole = out.getvalue()
    scan, end = whole.rindex(b"\xff\xda"), whole.rindex(b"\xff\xd9")
    return whole[:end] + whole[scan:end] * repeats + whole[end:]


def animation(form: str) -> bytes:
    """Return an animated picture of three frames."""
    frames = [Image.new("RGB", (64, 64), colour) for colour in ("red", "green", "blue")]
    out = BytesIO()
    frames[0].save(out, form, save_all=True, append_images=frames[1:])
    return out.getvalue()

"""Count the scans of a JPEG without decoding it."""

import re

_MARKER = re.compile(rb"\xff+([^\x00\xff])", re.DOTALL)
_AFTER_SCAN = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])", re.DOTALL)
"""The first marker after the data of a scan. The data may contain \\xff00 and RST0 to RST7."""
SOI, EOI, SOS = 0xD8, 0xD9, 0xDA
_WITHOUT_LENGTH = {0x01, SOI, *range(0xD0, 0xD8)}


def count_scans(data: bytes, most: int) -> int:
    """Return how many scans the first picture in `data` has, but at most `most`.

    Like libjpeg, this follows the markers and skips other bytes between them.
    """
    scans, position, marker = 0, 0, _MARKER
    while scans < most and (match := marker.search(data, position)):
        code, position, marker = match[1][0], match.end(), _MARKER
        if code == EOI:
            break
        if code in _WITHOUT_LENGTH:
            continue
        position += int.from_bytes(data[position : position + 2], "big")
        if code == SOS:
            scans, marker = scans + 1, _AFTER_SCAN
    return scans

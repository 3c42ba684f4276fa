"""Clean text for XML, headers and mails."""

import re

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_OTHER_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
HEADER_LENGTH = 300


def printable(text: str) -> str:
    """Return the text without characters that XML does not allow."""
    return _FORBIDDEN.sub("", text)


def plain_breaks(text: str) -> str:
    r"""Return the text with line breaks of all kinds replaced by \n."""
    return _OTHER_BREAKS.sub("\n", text)


def one_line(text: str) -> str:
    """Return the text as one line for a header: no control characters, cut to HEADER_LENGTH."""
    line = " ".join(_BREAKS.sub(" ", printable(text)).split())
    return line if len(line) <= HEADER_LENGTH else line[: HEADER_LENGTH - 1] + "…"

"""Convert HTML to PDF, without access to anything outside the HTML."""

import ctypes
import logging
import sys
from collections.abc import Mapping
from io import BytesIO
from typing import Any, NoReturn

MOST_BYTES = 20_000_000
"""Limit for a PDF."""
LIBRARIES: Mapping[str, str] = {
    "libpango-1.0.so.0": "libpango-1.0-0",
    "libpangoft2-1.0.so.0": "libpangoft2-1.0-0",
    "libharfbuzz.so.0": "libharfbuzz0b",
    "libfontconfig.so.1": "libfontconfig1",
}
"""The packages of Debian and Ubuntu by library. Without these libraries WeasyPrint cannot be
loaded. Optional ones, such as libharfbuzz-subset, are not listed."""


class LibraryMissing(Exception):
    """WeasyPrint's system libraries are not installed; the message names the packages."""


class TooLarge(Exception):
    """The PDF exceeds the limit."""


def to_pdf(html: str) -> bytes:
    """Return the PDF. Raises LibraryMissing or TooLarge."""
    if packages := missing_packages():
        raise LibraryMissing(how_to_install(packages))
    try:
        from weasyprint import HTML, URLFetcher  # imported here, since it loads the libraries
    except OSError as error:
        message = f"{error}; {how_to_install(list(LIBRARIES.values()))}"
        raise LibraryMissing(message) from error

    class NoFetcher(URLFetcher):
        def fetch(self, url: str, headers: Any = None) -> NoReturn:
            """Fetch nothing, neither from the network nor from files or `data:` URLs."""
            raise ValueError("a report must not refer to anything outside itself")

    logging.getLogger("weasyprint.progress").setLevel(logging.WARNING)
    out = BytesIO()
    HTML(string=html, url_fetcher=NoFetcher()).write_pdf(out)
    content = out.getvalue()
    if len(content) > MOST_BYTES:
        raise TooLarge(f"the PDF has {len(content) / 1e6:.1f} MB; the limit is 20 MB")
    return content


def missing_packages() -> list[str]:
    """Return the packages to install. Only Linux is checked."""
    missing: list[str] = []
    if sys.platform != "linux":
        return missing
    for library, package in LIBRARIES.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            missing.append(package)
    return missing


def how_to_install(packages: list[str]) -> str:
    return (
        f"reports need Pango, which is not installed: apt-get install {' '.join(packages)}"
        " fonts-dejavu-core (or run scripts/install-system-packages as root)"
    )

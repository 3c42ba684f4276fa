"""Convert HTML to PDF, without access to anything outside the HTML."""

import logging
from io import BytesIO
from typing import Any, NoReturn

from tailrace.domains.protection.services.reports import libraries

MOST_BYTES = 20_000_000
"""Limit for a PDF."""


class LibraryMissing(Exception):
    """WeasyPrint's system libraries are not installed; the message names the packages."""


class TooLarge(Exception):
    """The PDF exceeds the limit."""


def to_pdf(html: str) -> bytes:
    """Return the PDF. Raises LibraryMissing or TooLarge."""
    if packages := libraries.missing_packages():
        raise LibraryMissing(libraries.how_to_install(packages))
    try:
        from weasyprint import HTML, URLFetcher  # imported here, since it loads the libraries
    except OSError as error:
        message = f"{error}; {libraries.how_to_install(list(libraries.LIBRARIES.values()))}"
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

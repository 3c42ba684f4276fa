"""HTML to PDF, without a look at anything outside the HTML."""

import logging
from io import BytesIO
from typing import Any, NoReturn

from tailrace.domains.protection.reports import libraries

MOST_BYTES = 20_000_000
"""Of a PDF."""


class LibraryMissing(Exception):
    """WeasyPrint's system libraries are not installed; the message names the packages."""


class TooLarge(Exception):
    """The PDF has more bytes than a report may have."""


def to_pdf(html: str) -> bytes:
    """Return the PDF. Raises LibraryMissing or TooLarge."""
    if packages := libraries.missing_packages():
        raise LibraryMissing(libraries.how_to_install(packages))
    try:
        from weasyprint import HTML, URLFetcher  # here: it loads the libraries
    except OSError as error:
        message = f"{error}; {libraries.how_to_install(list(libraries.LIBRARIES.values()))}"
        raise LibraryMissing(message) from error

    class NoFetcher(URLFetcher):
        def fetch(self, url: str, headers: Any = None) -> NoReturn:
            """Fetch nothing: neither from the network, nor from files, nor from the URL itself."""
            raise ValueError("a report refers to nothing outside itself")

    logging.getLogger("weasyprint.progress").setLevel(logging.WARNING)
    out = BytesIO()
    HTML(string=html, url_fetcher=NoFetcher()).write_pdf(out)
    content = out.getvalue()
    if len(content) > MOST_BYTES:
        raise TooLarge(f"the PDF has {len(content) / 1e6:.1f} MB; the limit is 20 MB")
    return content

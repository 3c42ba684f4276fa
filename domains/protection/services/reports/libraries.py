"""The system libraries that WeasyPrint needs for text, and their packages."""

import ctypes
import sys
from collections.abc import Mapping

LIBRARIES: Mapping[str, str] = {
    "libpango-1.0.so.0": "libpango-1.0-0",
    "libpangoft2-1.0.so.0": "libpangoft2-1.0-0",
    "libharfbuzz.so.0": "libharfbuzz0b",
    "libfontconfig.so.1": "libfontconfig1",
}
"""The packages of Debian and Ubuntu by library. Without these libraries WeasyPrint cannot be
loaded. Optional ones, such as libharfbuzz-subset, are not listed."""


def missing_packages() -> list[str]:
    """Return the packages to install. Only Linux is checked."""
    if sys.platform != "linux":
        return []
    return [package for library, package in LIBRARIES.items() if not _loads(library)]


def how_to_install(packages: list[str]) -> str:
    """Return instructions for an operator."""
    return (
        f"reports need Pango, which is not installed: apt-get install {' '.join(packages)}"
        " fonts-dejavu-core (or run scripts/install-system-packages as root)"
    )


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True

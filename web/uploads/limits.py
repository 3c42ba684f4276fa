"""Limits of uploads. The result of a check is reliable only while the user is locked."""

from django.conf import settings

from tailrace.web.bodies import max_bytes
from tailrace.web.uploads.errors import FileTooLarge, QuotaExceeded

UPLOAD_COST = 5
"""Number of ordinary requests that an upload counts as."""
GIGABYTE = 1_000_000_000


def megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def check_size(field: str, size: int, setting: str) -> None:
    """Raise FileTooLarge if the files of an upload have more bytes than the setting allows."""
    if size > max_bytes(setting):
        limit = f"the limit is {megabytes(max_bytes(setting))} ({setting})"
        raise FileTooLarge((field, f"the upload has {megabytes(size)}; {limit}"))


def check_count(field: str, count: int, noun: str, setting: str, advice: str = "") -> None:
    """Raise QuotaExceeded if the user has `count` of these already and may have no more.

    `noun` is their name in the plural. With the setting 0 there is no limit.
    """
    most = getattr(settings, setting)
    if most and count >= most:
        message = f"the maximum number of {noun} is {most:,} ({setting})"
        raise QuotaExceeded((field, f"{message}; {advice}" if advice else message))


def check_space(field: str, used: int, size: int, setting: str, advice: str = "") -> None:
    """Raise QuotaExceeded if the user's files have `used` bytes and may not grow by `size` bytes.
    The setting is in gigabytes; 0: no limit."""
    most = getattr(settings, setting)
    if most and used + size > most * GIGABYTE:
        message = (
            f"your files take {used / GIGABYTE:.2f} GB, this upload {size / GIGABYTE:.3f} GB more,"
            f" and the maximum is {most:g} GB ({setting})"
        )
        raise QuotaExceeded((field, f"{message}; {advice}" if advice else message))

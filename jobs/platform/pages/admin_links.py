"""Links to the admin from pages that also work without it."""

from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, reverse


def admin_address(view: str, *args: str | int) -> str:
    """Return the address of the admin's `view`, e.g. `tailrace_jobs_job_change`; an empty string
    if the project's URLs do not have this page."""
    try:
        return reverse(f"admin:{view}", args=[quote(arg) for arg in args])
    except NoReverseMatch:
        return ""

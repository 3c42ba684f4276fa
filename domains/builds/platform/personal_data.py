"""The personal data that builds store. Roles in projects belong to the build service and stay."""

from tailrace.domains.builds.models import Watch
from tailrace.web.accounts.personal_data import PersonalData


class Watches(PersonalData):
    """The projects, packages and requests that you watch."""

    rows = {Watch: "user"}

"""What builds store of a person. Roles in projects are the build service's, and stay."""

from tailrace.domains.builds.models import Watch
from tailrace.web.accounts.personal_data import PersonalData


class Watches(PersonalData):
    """The projects, packages and requests that you watch."""

    rows = {Watch: "user"}

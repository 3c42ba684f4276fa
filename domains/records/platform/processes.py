"""The address of the pages of records, which `make run` prints."""

from django.conf import settings


def addresses() -> dict[str, str]:
    return {"Records": f"{settings.PUBLIC_URL}/records/"}

"""Where `make run` shows records."""

from django.conf import settings


def addresses() -> dict[str, str]:
    return {"Records": f"{settings.PUBLIC_URL}/records/"}

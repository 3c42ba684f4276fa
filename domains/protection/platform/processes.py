"""Where `make run` shows identity protection."""

from django.conf import settings


def addresses() -> dict[str, str]:
    return {"Protection": f"{settings.PUBLIC_URL}/protection/"}

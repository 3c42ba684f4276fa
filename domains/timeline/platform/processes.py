"""Where `make run` shows timelines."""

from django.conf import settings


def addresses() -> dict[str, str]:
    return {"Timeline": f"{settings.PUBLIC_URL}/timeline/"}

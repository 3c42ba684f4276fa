"""What the attacks on accounts share: Ann's passwords, her sessions, her codes, the log."""

import base64

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.http import HttpResponse
from django.test import Client

from tailrace.db.query import database_now
from tailrace.events.models import Event
from tailrace.web.accounts.security import second_factor
from tailrace.web.models import SecondFactor

RIGHT = "a long password"
OTHER = "quite another one"
LOGIN, CODE, SETUP = (
    "/accounts/login/",
    "/accounts/second-factor/",
    "/accounts/second-factor/set-up/",
)


def sign_in(password: str = RIGHT, client: Client | None = None, **form: str) -> HttpResponse:
    client = client or Client()
    answer: HttpResponse = client.post(LOGIN, {"username": "ann", "password": password, **form})
    return answer


def session(password: str = RIGHT) -> Client:
    client = Client()
    assert sign_in(password, client).status_code == 302
    return client


def is_in(client: Client) -> bool:
    return bool(client.get("/me/feeds").status_code == 200)


def entries() -> list[str]:
    rows = Event.objects.filter(type__startswith="security.").order_by("id")
    return [name.removeprefix("security.") for name in rows.values_list("type", flat=True)]


def code_of(factor: SecondFactor, steps: int = 0) -> str:
    """Return what the app shows, so many steps of 30 s from now."""
    key = base64.b32decode(second_factor.key_of(factor))
    at = int(database_now().timestamp()) + 30 * steps
    app = TOTP(key, 6, SHA1(), 30)  # noqa: S303
    return app.generate(at).decode()

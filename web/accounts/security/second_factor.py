"""The second factor: codes of an authenticator app (TOTP, RFC 6238), and recovery codes.

The key is stored encrypted, recovery codes as hashes. No code is accepted twice.
"""

import base64
import hashlib
import secrets
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor import InvalidToken
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest

from tailrace.db.query import database_now
from tailrace.net.encryption import decrypt, encrypt
from tailrace.web.accounts.security.log import record
from tailrace.web.event_types import SecondFactorChanged
from tailrace.web.models import SecondFactor

ISSUER = "Tailrace"
STEP_SECONDS = 30
DIGITS = 6
DRIFT = 1
"""Steps that the clock of the app may be fast or slow."""
KEY_BYTES = 20
RECOVERY_CODES = 10
RECOVERY_BYTES = 10
_SESSION = "second_factor"


def of(user: Any) -> SecondFactor | None:
    """Return the second factor of the user, if it is set up."""
    return SecondFactor.objects.filter(user=user, confirmed_at__isnull=False).first()


def begin(user: User) -> SecondFactor:
    """Return the user's factor, to be confirmed by `set_up`; a second call returns the same key."""
    key = encrypt(base64.b32encode(secrets.token_bytes(KEY_BYTES)).decode())
    return SecondFactor.objects.get_or_create(user=user, defaults={"key": key})[0]


def key_of(factor: SecondFactor) -> str:
    """Return the key in base32, for users who cannot scan the QR code."""
    return decrypt(factor.key)


def provisioning_uri(factor: SecondFactor) -> str:
    """Return the otpauth:// URI for the QR code."""
    return _totp(factor).get_provisioning_uri(factor.user.get_username(), ISSUER)


def set_up(factor: SecondFactor, code: str) -> list[str] | None:
    """Confirm the factor with a first code. Returns new recovery codes, which cannot be read again;
    None if the code is wrong."""
    with transaction.atomic():
        factor = SecondFactor.objects.select_for_update().get(pk=factor.pk)
        if factor.confirmed_at is not None or not _accept_code(factor, code):
            return None
        factor.confirmed_at = database_now()
        codes = _renew_codes(factor)
        record(SecondFactorChanged, factor.user, change="set up")
    return codes


def new_recovery_codes(factor: SecondFactor) -> list[str]:
    """Replace all recovery codes. Returns the new codes, which cannot be read again."""
    with transaction.atomic():
        codes = _renew_codes(factor)
        record(SecondFactorChanged, factor.user, change="new recovery codes")
    return codes


def remove(factor: SecondFactor) -> None:
    with transaction.atomic():
        record(SecondFactorChanged, factor.user, change="removed")
        factor.delete()


def verify(factor: SecondFactor, text: str) -> str:
    """Use up a code. Returns its kind, `code` or `recovery code`; "" if the text is not valid."""
    text = "".join(text.split()).replace("-", "").lower()
    with transaction.atomic():
        locked = SecondFactor.objects.select_for_update().get(pk=factor.pk)
        if _accept_code(locked, text):
            locked.save(update_fields=["last_step"])
            return "code"
        if (code_hash := _hash(text)) in locked.recovery_codes:
            locked.recovery_codes.remove(code_hash)
            locked.save(update_fields=["recovery_codes"])
            return "recovery code"
    return ""


def mark_session(request: HttpRequest) -> None:
    request.session[_SESSION] = True


def session_has_it(request: HttpRequest) -> bool:
    return bool(request.session.get(_SESSION))


def _accept_code(factor: SecondFactor, code: str) -> bool:
    """Return whether the code is currently valid and newer than the last accepted code.

    Sets `last_step` of the factor but does not save it.
    """
    if len(code) != DIGITS or not (code.isascii() and code.isdigit()):
        return False
    now, totp = int(database_now().timestamp()), _totp(factor)
    for step in range(now // STEP_SECONDS - DRIFT, now // STEP_SECONDS + DRIFT + 1):
        if step <= factor.last_step:
            continue
        try:
            totp.verify(code.encode(), step * STEP_SECONDS)
        except InvalidToken:
            continue
        factor.last_step = step
        return True
    return False


def _renew_codes(factor: SecondFactor) -> list[str]:
    codes = [secrets.token_hex(RECOVERY_BYTES) for _ in range(RECOVERY_CODES)]
    factor.recovery_codes = [_hash(code) for code in codes]
    factor.save()
    return ["-".join(code[i : i + 5] for i in range(0, len(code), 5)) for code in codes]


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


def _totp(factor: SecondFactor) -> TOTP:
    key = base64.b32decode(decrypt(factor.key))
    algorithm = SHA1()  # noqa: S303 - the default of RFC 6238; many apps support no other
    return TOTP(key, DIGITS, algorithm, STEP_SECONDS)

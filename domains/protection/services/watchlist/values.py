"""The normalized form of watched values, by kind, and how they are masked and hashed."""

import hashlib
import hmac
import re
from collections.abc import Callable

import idna
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from tailrace.domains.protection.models import Kind
from tailrace.net import encryption

MAX_LENGTH = 254
DOTS = "•••"
_PHONE = re.compile(r"\+[1-9][0-9]{6,14}")
_USERNAME = re.compile(r"[^\s\x00-\x1f\x7f@]{2,100}")
_SSN = re.compile(r"(?!000|666|9)[0-9]{3}(?!00)[0-9]{2}(?!0000)[0-9]{4}")


class InvalidValue(ValueError):
    """The value cannot be watched. The message is for the person who typed it."""


def normalized(kind: str, text: str) -> str:
    """Return the normalized form of a value of this kind. Raises InvalidValue."""
    if kind not in _NORMALIZERS:
        raise InvalidValue(
            f"{kind[:50]!r} is not a kind of value: choose one of {', '.join(_NORMALIZERS)}"
        )
    stripped = text.strip()
    if len(stripped) > MAX_LENGTH:
        raise InvalidValue(f"A watched value has at most {MAX_LENGTH} characters.")
    if not stripped or "\x00" in stripped:
        raise InvalidValue("Enter the value to watch.")
    return _NORMALIZERS[kind](stripped)


def masked(kind: str, value: str) -> str:
    """Return the masked form of a normalized value, by which its owner can recognize it."""
    if kind == Kind.EMAIL:
        name, _at, host = value.rpartition("@")
        return f"{name[0]}{DOTS}@{host}"
    if kind == Kind.PHONE:
        return f"{value[:3]}{DOTS}{value[-2:]}"
    if kind == Kind.SSN:
        return f"{DOTS}-••-{value[-4:]}"
    if kind == Kind.USERNAME:
        return f"{value[0]}{DOTS}{value[-1]}"
    return value


def value_key(kind: str, value: str) -> str:
    """Return the keyed hash that identifies a normalized value.

    Without a key, a Social Security number could be found from its hash by trying all numbers.
    """
    text = f"{kind}:{value}".encode()
    return hmac.new(_hash_key(), text, hashlib.sha256).hexdigest()


def key_ids() -> str:
    """Return the ids of the keys that encrypt and hash new values. They change with either key."""
    hashing = hashlib.sha256(b"tailrace key id " + _hash_key()).hexdigest()[:8]
    return f"{encryption.newest_key_id()}:{hashing}"


def _hash_key() -> bytes:
    if own := settings.PROTECTION_HASH_KEY:
        return str(own).encode()
    secret = b"tailrace watched values " + str(settings.SECRET_KEY).encode()
    return hashlib.sha256(secret).digest()


def _email(text: str) -> str:
    name, _at, host = text.lower().rpartition("@")
    try:
        address = f"{name}@{_host(host)}"
        validate_email(address)
    except (ValidationError, InvalidValue):
        raise InvalidValue(
            f"“{text}” is not an email address: write it like ann@example.org."
        ) from None
    return address


def _phone(text: str) -> str:
    digits = re.sub(r"[\s().\-/\u2010-\u2015]", "", text)
    digits = "+" + digits[2:] if digits.startswith("00") else digits
    if not _PHONE.fullmatch(digits):
        raise InvalidValue(
            f"“{text}” is not an international phone number: write it with its country"
            " code, like +1 212 555 0100."
        )
    return digits


def _domain(text: str) -> str:
    name = text.lower().rstrip(".")
    if "/" in name or ":" in name or "@" in name:
        raise InvalidValue(f"“{text}” is not a domain: write only the domain, like example.org.")
    return _host(name)


def _host(text: str) -> str:
    """Return the ASCII form (IDNA 2008) of a name with at least two parts."""
    try:
        name = idna.encode(text, uts46=True, std3_rules=True).decode()
    except (idna.IDNAError, UnicodeError):
        name = ""
    if "." not in name or name.rpartition(".")[2].isdigit():
        raise InvalidValue(f"“{text}” is not a domain: write it like example.org.")
    return name


def _username(text: str) -> str:
    if not _USERNAME.fullmatch(text):
        raise InvalidValue(
            f"“{text}” is not a user name: it has 2 to 100 characters, without spaces and @."
        )
    return text.lower()


def _ssn(text: str) -> str:
    digits = re.sub(r"[\s\-\u2010-\u2015]", "", text)
    if not re.fullmatch(r"[0-9]{9}", digits):
        raise InvalidValue("A Social Security number has nine digits, like 123-45-6789.")
    if not _SSN.fullmatch(digits):
        raise InvalidValue(
            "This is not a Social Security number: none begins with 000, 666 or 9, or has the"
            " middle part 00 or the last part 0000. Taxpayer numbers (ITIN) cannot be watched."
        )
    return digits


_NORMALIZERS: dict[str, Callable[[str], str]] = {
    Kind.EMAIL.value: _email,
    Kind.PHONE.value: _phone,
    Kind.DOMAIN.value: _domain,
    Kind.USERNAME.value: _username,
    Kind.SSN.value: _ssn,
}

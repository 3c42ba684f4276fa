"""Advice for the user of an exposure, by the kinds of lost data."""

from collections.abc import Iterable

_SIGN_IN = (
    "Change the password of this site, and of every site where you use the same one. Turn on"
    " two-factor authentication where it is offered."
)
_CARD = (
    "Ask the bank to replace the card or to watch the account, and check your statements since the"
    " leak."
)
_NUMBER = (
    "Freeze your credit at Equifax, Experian and TransUnion, which is free, and report misuse at"
    " identitytheft.gov."
)
_MAIL = (
    "Expect fake mails in the name of this site: type the address of the site instead of opening"
    " their links."
)
_PHONE = "Expect fraudulent calls and texts. Ask your phone company for a PIN against SIM swapping."
_PERSON = (
    "Do not use this data to prove your identity: where a site asks for it as a security question,"
    " choose another answer."
)
_QUESTIONS = (
    "Change the answers on every site where you use the same ones, and do not use true answers."
)

# The advice by words in the names of data classes, the most urgent first.
_ADVICE = (
    (("social security", "government issued", "passport", "driver", "tax"), _NUMBER),
    (("credit card", "bank account", "card cvv", "payment"), _CARD),
    (("password", "pin", "auth token", "private key"), _SIGN_IN),
    (("security question",), _QUESTIONS),
    (("email",), _MAIL),
    (("phone", "sms", "imei"), _PHONE),
    (("date of birth", "dates of birth", "physical address", "mother"), _PERSON),
)
_GENERAL = (
    "This is not urgent. Others may have this data: be careful if somebody contacts you with it."
)


def advice(data_classes: Iterable[str]) -> list[str]:
    """Return the advice for lost data of these classes, the most urgent first."""
    lost = [str(name).lower() for name in data_classes]
    return [
        text
        for words, text in _ADVICE
        if any(_has_word(name, word) for word in words for name in lost)
    ] or [_GENERAL]


def _has_word(name: str, word: str) -> bool:
    """Return whether the name has the word or its plural: `shipping` does not have `pin`."""
    return f" {word} " in f" {name} " or f" {word}s " in f" {name} "

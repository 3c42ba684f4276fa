"""What to do about an exposure, by what was lost."""

from collections.abc import Iterable

_SIGN_IN = (
    "Change the password of this site, and wherever you use the same one. Turn on a second factor"
    " where there is one."
)
_CARD = (
    "Have the bank replace the card or watch the account, and look through the statements since the"
    " leak."
)
_NUMBER = (
    "Freeze your credit at Equifax, Experian and TransUnion, which is free, and report misuse at"
    " identitytheft.gov."
)
_MAIL = (
    "Expect mails that pretend to be from this site: open it by its address, not by their links."
)
_PHONE = "Expect fraudulent calls and texts. Ask your phone company for a PIN against SIM swapping."
_PERSON = (
    "Do not use it to prove who you are: choose other answers where a site asks for it as a check."
)
_QUESTIONS = "Change the answers wherever you use the same ones, and do not use true ones."

# By words in the names of data classes, the most urgent first.
_ADVICE = (
    (("social security", "government issued", "passport", "driver", "tax"), _NUMBER),
    (("credit card", "bank account", "card cvv", "payment"), _CARD),
    (("password", "pin", "auth token", "private key"), _SIGN_IN),
    (("security question",), _QUESTIONS),
    (("email",), _MAIL),
    (("phone", "sms", "imei"), _PHONE),
    (("date of birth", "dates of birth", "physical address", "mother"), _PERSON),
)
_ELSE = "Nothing is urgent: know that others may have this, and be careful with who mentions it."


def advice(data_classes: Iterable[str]) -> list[str]:
    """Return what to do when data of these classes is lost, the most urgent first."""
    lost = [str(name).lower() for name in data_classes]
    return [
        text
        for words, text in _ADVICE
        if any(_stands_in(word, name) for word in words for name in lost)
    ] or [_ELSE]


def _stands_in(word: str, name: str) -> bool:
    """Return whether the name has the word, or its plural; `pin` does not stand in `shipping`."""
    return f" {word} " in f" {name} " or f" {word}s " in f" {name} "

"""Names of new apps, handlers and event types."""

import keyword
import re

from django.apps import AppConfig, apps

from tailrace.environment.folders import IS_CHECKOUT
from tailrace.environment.suggest import did_you_mean

LONGEST = 40
DOMAINS = "tailrace.domains."


class ScaffoldError(ValueError):
    """A name is not valid or a file exists; the message says what to do. Nothing was written."""


def refuse_installed() -> None:
    """Raise ScaffoldError if Tailrace is an installed package, which has no folder of domains."""
    if not IS_CHECKOUT:
        raise ScaffoldError(
            "this works in a checkout of Tailrace, but here Tailrace is an installed package. For a"
            " platform with domains of your own, clone the repository of Tailrace. Or write an app"
            " in a Django project with 'tailrace.events' and 'tailrace.jobs' in INSTALLED_APPS"
        )


def check_word(word: str, what: str) -> None:
    """Raise ScaffoldError if the word cannot name a module and a queue. `what` is used in the
    message."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", word) or keyword.iskeyword(word):
        raise ScaffoldError(
            f"{word!r} cannot be the name of {what}: use small letters, digits and _, begin with"
            " a letter, and use no keyword of Python"
        )
    if len(word) > LONGEST:
        raise ScaffoldError(
            f"{word!r} cannot be the name of {what}: it has more than {LONGEST} characters"
        )


def split_name(name: str, what: str, example: str) -> tuple[str, str]:
    """Return the two parts of a name such as `shop.send_receipt`. Raises ScaffoldError."""
    label, dot, rest = name.partition(".")
    if not dot:
        raise ScaffoldError(
            f"{name!r} cannot be the name of {what}: write app.name, such as {example}"
        )
    check_word(label, "an app")
    check_word(rest, what)
    return label, rest


def find_app(label: str) -> AppConfig:
    """Return the app config of a domain. Raises ScaffoldError."""
    domains: dict[str, AppConfig] = {
        config.name.removeprefix(DOMAINS): config
        for config in apps.get_app_configs()
        if config.name.startswith(DOMAINS)
    }
    if label not in domains:
        raise ScaffoldError(
            f"no app of domains/ is called {label!r}{did_you_mean(label, domains)}; create it by"
            f" `manage.py new_app {label}`"
        )
    return domains[label]


def class_name(word: str) -> str:
    """Return `SendReceipt` for `send_receipt`."""
    return "".join(part.capitalize() for part in word.split("_"))


def in_words(word: str) -> str:
    """Return `Send receipt` for `send_receipt`."""
    return word.replace("_", " ").strip().capitalize()

"""Names of new apps and handlers, and how files and classes are added without changing others."""

import ast
import keyword
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from django.apps import AppConfig, apps
from django.core.management.base import CommandError

from tailrace.environment.folders import IS_CHECKOUT
from tailrace.environment.suggest import did_you_mean

LONGEST = 40
DOMAINS = "tailrace.domains."


class ScaffoldError(CommandError):
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


def refuse_existing(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.exists():
            raise ScaffoldError(f"{path} exists already; nothing was written")


def write_new(files: Mapping[Path, str]) -> None:
    """Write these files. If one of them exists, raises ScaffoldError and writes nothing."""
    refuse_existing(files)
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x") as file:  # fails if the file was just created
            file.write(text)


def replace(path: Path, text: str) -> None:
    """Replace the content of a file atomically and keep its mode."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.chmod(path.stat().st_mode & 0o777)
    os.replace(new, path)


def declared(path: Path) -> set[str]:
    """Return the names of the classes in a module; an empty set if there is no such file."""
    if not path.exists():
        return set()
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def with_class(source: str, imports: Mapping[str, str], code: str) -> str:
    """Return a module's source with the class `code` at its end, and with `imports` added: the
    imported names by module."""
    for module, name in imports.items():
        source = _with_import(source, module, name)
    return f"{source.rstrip()}\n\n\n{code.strip()}\n"


def _with_import(source: str, module: str, name: str) -> str:
    tree, lines = ast.parse(source), source.splitlines()
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    froms = [node for node in imports if isinstance(node, ast.ImportFrom)]
    if any(alias.name == name for node in froms if node.module == module for alias in node.names):
        return source
    same = [node for node in froms if node.module == module and node.lineno == node.end_lineno]
    if same:
        names = sorted({alias.name for alias in same[0].names} | {name})
        lines[same[0].lineno - 1] = f"from {module} import {', '.join(names)}"
        return "\n".join(lines) + "\n"
    line = f"from {module} import {name}"
    group = [node for node in imports if _order(_module(node))[0] == _order(module)[0]]
    before = [node.end_lineno or 0 for node in group if _module(node) < module]
    if before:
        lines.insert(max(before), line)
    elif group:
        lines.insert(group[0].lineno - 1, line)
    elif imports and _order(module) > _order(_module(imports[-1])):
        at = imports[-1].end_lineno or 0
        lines[at:at] = ["", line]
    elif imports:
        at = imports[0].lineno - 1
        lines[at:at] = [line, ""]
    else:
        after = tree.body[0].end_lineno or 0 if ast.get_docstring(tree) is not None else 0
        lines[after:after] = ["", line] if after else [line]
    return "\n".join(lines) + "\n"


def _order(module: str) -> tuple[bool, str]:
    """Return the sort key of an import: other packages first, then our own."""
    return module.partition(".")[0] == "tailrace", module


def _module(node: ast.Import | ast.ImportFrom) -> str:
    return node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name

"""Write what docs/reference takes from the code: settings, commands and operations of the API.
It stands between two comments of each page; the rest of the page is written by hand."""

import argparse
import os
import re
import sys
from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
BEGIN, END = "<!-- made by `make reference` -->", "<!-- end -->"
OF_DJANGO = {
    *("help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color"),
    *("force_color", "skip_checks"),
}
"""Options that every command has."""


def settings() -> str:
    from tailrace.config.commands.environment import table

    return table()


def commands() -> str:
    """Return a section for each command, with its options, by app."""
    from tailrace.events.management.subcommands import PACKAGE, all_subcommands

    parts: list[str] = []
    for app, commands in groupby(all_subcommands().values(), lambda each: each.app.name):
        parts.append(f"## {app.removeprefix(f'{PACKAGE}.')}")
        for subcommand in commands:
            command = subcommand.load()
            parser = command.create_parser("tailrace", subcommand.name)
            parts.append(f"### `{subcommand.name}`\n\n{' '.join(command.help.split())}")
            if options := list(_options(parser)):
                parts.append("\n".join(["| option | |", "| --- | --- |", *options]))
    return "\n\n".join(parts)


def _options(parser: ArgumentParser) -> Iterator[str]:
    """Yield a row for each option that not every command has. An option of several subcommands
    has one row, which names them."""
    actions = [each for each in parser._actions if each.dest not in OF_DJANGO]
    having: dict[str, list[str]] = {}
    for action in actions:
        if not isinstance(action, _SubParsersAction):
            yield _row(action)
            continue
        for each in action._choices_actions:
            yield f"| `{each.dest}` | {each.help or ''} |"
            for row in _options(action.choices[each.dest]):
                having.setdefault(row, []).append(f"`{each.dest}`")
    for row, names in having.items():
        yield row.replace("| `", f"| {', '.join(names)}: `", 1)


def _row(action: Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices and len(action.choices) < 5:
        value = " or ".join(map(str, action.choices))
    if action.option_strings:
        value = action.option_strings[-1] + ("" if action.nargs == 0 else f" {value}")
    text = " ".join((action.help or "").split()) % {"default": action.default}
    return f"| `{value}` | {text} |".replace("  ", " ")


def operations() -> str:
    """Return a table of the operations of the API for each of its groups."""
    from tailrace.web.api.site import api

    rows: dict[str, list[str]] = {}
    for path, of_path in api.get_openapi_schema()["paths"].items():
        for method, operation in of_path.items():
            [scope] = next(each["token"] for each in operation["security"] if "token" in each)
            row = f"| `{method.upper()} {path}` | {operation['summary']} | `{scope}` |"
            rows.setdefault(operation["tags"][0], []).append(row)
    head = "| request | | scope |\n| --- | --- | --- |\n"
    return "\n\n".join(f"## {tag}\n\n{head}" + "\n".join(each) for tag, each in rows.items())


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings,
    "commands.md": commands,
    "api-operations.md": operations,
}


def written() -> Iterator[tuple[Path, str]]:
    """Yield each page with the text that it should have."""
    pattern = re.compile(f"(?<={re.escape(BEGIN)}\n).*(?=\n{re.escape(END)})", re.DOTALL)
    for name, make in PAGES.items():
        page = REFERENCE / name
        made = f"\n{make()}\n".replace("\\", r"\\")
        text, count = pattern.subn(made, page.read_text())
        if not count:
            sys.exit(f"{page} has no {BEGIN}")
        yield page, text


def main(*, check: bool) -> None:
    """Write the pages, or end with an error if one of them is not what the code says."""
    import django

    for name in ("TAILRACE_VAR", "DATABASE_URL", "BROKER_URL"):
        os.environ[name] = ""
    os.environ["LOG_LEVEL"] = "ERROR"
    os.environ.setdefault("SECRET_KEY", "of this process, which signs nothing")
    os.environ["DJANGO_SETTINGS_MODULE"] = "tailrace.config.settings"
    django.setup()
    stale = [(page, text) for page, text in written() if page.read_text() != text]
    for page, text in stale:
        if not check:
            page.write_text(text)
            print(page.relative_to(ROOT))
    if stale and check:
        names = ", ".join(str(page.relative_to(ROOT)) for page, _ in stale)
        sys.exit(f"out of date: {names}; run `make reference`")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    main(check=parser.parse_args().check)

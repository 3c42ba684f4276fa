from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from tailrace.config.commands._scaffold import (
    DOMAINS,
    ScaffoldError,
    check_word,
    class_name,
    in_words,
    refuse_existing,
    refuse_installed,
    replace,
    write_new,
)

APPS = Path("config/installed_apps.py")
_END = "\n]\n"

_CONFIG = '''from django.apps import AppConfig


class {cls}Config(AppConfig):
    """{words}."""

    name = "tailrace.domains.{label}"
    label = "{label}"
    default_auto_field = "django.db.models.BigAutoField"
'''


def create_app(base: Path, label: str) -> list[Path]:
    """Write the files of an app below `base` and add it to the installed apps.

    Returns the written and changed files. Raises ScaffoldError before anything is written.
    """
    check_word(label, "an app")
    if any(config.name.rpartition(".")[2] == label for config in apps.get_app_configs()):
        raise ScaffoldError(f"an app called {label!r} is installed already")
    folder, tests = base / "domains" / label, base / "tests" / label
    refuse_existing([folder, tests])
    installed = base / APPS
    source = installed.read_text()
    if source.count(_END) != 1:
        raise ScaffoldError(f"{installed} does not contain exactly one list of apps")
    files = {
        folder / "__init__.py": "",
        folder / "apps.py": _CONFIG.format(
            cls=class_name(label), label=label, words=in_words(label)
        ),
        folder / "event_types.py": f'"""The event types of {label}."""\n',
        folder / "handlers.py": f'"""The handlers of {label}: one class for each side effect."""\n',
        tests / "__init__.py": "",
    }
    write_new(files)
    replace(installed, source.replace(_END, f'\n    "{DOMAINS}{label}",{_END}'))
    return [*(path for path, text in files.items() if text), installed]


class Command(BaseCommand):
    help = (
        "Create an app in domains/, with its files and a folder of tests, and add it to the"
        " installed apps. Existing files are not overwritten."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="such as shop")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        refuse_installed()
        for path in create_app(Path(settings.BASE_DIR), name):
            self.stdout.write(str(path.relative_to(settings.BASE_DIR)))
        self.stdout.write(
            f"Next: manage.py new_handler {name}.do_something --on {name}.something_happened"
        )

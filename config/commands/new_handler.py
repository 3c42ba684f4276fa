from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from pydantic import BaseModel

from tailrace.config.commands._scaffold import (
    DOMAINS,
    ScaffoldError,
    class_name,
    declared,
    find_app,
    in_words,
    refuse_existing,
    refuse_installed,
    replace,
    split_name,
    with_class,
    write_new,
)
from tailrace.environment.discovery import subclasses
from tailrace.environment.suggest import did_you_mean
from tailrace.events.types import all_types, find_type
from tailrace.jobs.handler import Handler

_EVENT_TYPE = '''
class {cls}(EventType):
    """{words}."""

    name = "{name}"

    class Payload(BaseModel):
        id: int
'''
_HANDLER = '''
class {cls}(Handler):
    """{words}."""

    name = "{name}"
    on = [{event}]

    def handle(self, job):
        """Write the side effect here. `job.event.payload` is the payload of {event}. A job may run
        twice: see docs/reference/handlers.md."""
'''
_TEST = '''"""{name} runs for each {on}."""

import pytest

{imports}

pytestmark = pytest.mark.django_db


def test_{on_word}_runs_{word}() -> None:
    (event,) = publish(NewEvent({event}, {payload}))
    assert_owed({cls}, event=event)
    assert run_owed(queue={cls}) == 1
'''
_SAMPLES: dict[Any, str] = {int: "1", float: "1.0", str: '"text"', bool: "False"}


@dataclass(frozen=True)
class _Event:
    """An event type: the name and module of its class, and a sample payload as Python code."""

    cls: str
    module: str
    payload: str
    new: bool


def create_handler(base: Path, name: str, on: str) -> list[Path]:
    """Add a handler to an app below `base`, and its event type `on` if that does not exist; return
    the files that were written or changed. Raises ScaffoldError before anything is written."""
    label, word = split_name(name, "a handler", "shop.send_receipt")
    app = find_app(label)
    if name in {cls.name for cls in subclasses(Handler)}:
        raise ScaffoldError(f"a handler called {name!r} exists already")
    event = _event(app, on)
    folder = base.joinpath(*app.name.split(".")[1:])
    test = base / "tests" / label / f"test_{word}.py"
    handlers, types = _module(folder, "handlers", word), _module(folder, "event_types", on)
    cls = class_name(word)
    refuse_existing([test])
    _refuse_class(handlers, cls)
    code = _HANDLER.format(cls=cls, words=in_words(word), name=name, event=event.cls)
    imports = {event.module: event.cls, "tailrace.jobs.handler": "Handler"}
    changed = []
    if event.new:
        _refuse_class(types, event.cls)
        text = _EVENT_TYPE.format(cls=event.cls, words=in_words(on.partition(".")[2]), name=on)
        _add(types, {"pydantic": "BaseModel", "tailrace.events.types": "EventType"}, text)
        changed.append(types)
    _add(handlers, imports, code)
    module = ".".join([app.name, *handlers.relative_to(folder).with_suffix("").parts])
    write_new({test: _test(name, on, cls, module, event)})
    return [*changed, handlers, test]


def _event(app: AppConfig, on: str) -> _Event:
    label, word = split_name(on, "an event type", "shop.order_paid")
    event_type = find_type(on)
    if event_type is None:
        own = app.name.removeprefix(DOMAINS)
        if label != own:
            names = [each.name for each in all_types()]
            raise ScaffoldError(
                f"no event type is called {on!r}{did_you_mean(on, names)}; to create an event type"
                f" of {own!r}, use --on {own}.{word}"
            )
        return _Event(class_name(word), f"{app.name}.event_types", '{"id": 1}', True)
    module = event_type.__module__
    if module.startswith(DOMAINS) and not module.startswith(f"{app.name}."):
        raise ScaffoldError(
            f"{on!r} is declared in {module}, which {app.name} may not import: domains never import"
            " each other (docs/how-to/new-domain.md)"
        )
    return _Event(event_type.__qualname__, module, _sample(event_type.Payload), False)


def _sample(payload: type[BaseModel]) -> str:
    """Return Python code of a payload with the required fields, None for types without a sample."""
    required = {
        key: _SAMPLES.get(field.annotation, "None")
        for key, field in payload.model_fields.items()
        if field.is_required()
    }
    return "{" + ", ".join(f'"{key}": {value}' for key, value in required.items()) + "}"


def _module(folder: Path, name: str, word: str) -> Path:
    """Return the file for a new class: the module, or a new file if it is a package."""
    package = folder / name
    return package / f"{word.rpartition('.')[2]}.py" if package.is_dir() else folder / f"{name}.py"


def _refuse_class(path: Path, cls: str) -> None:
    if cls in declared(path):
        raise ScaffoldError(f"{path} has a class {cls} already; nothing was written")


def _add(path: Path, imports: dict[str, str], code: str) -> None:
    source = path.read_text() if path.exists() else ""
    text = with_class(source, imports, code)
    if path.exists():
        replace(path, text)
    else:
        write_new({path: text.lstrip()})


def _test(name: str, on: str, cls: str, module: str, event: _Event) -> str:
    imports = [
        f"from {event.module} import {event.cls}",
        f"from {module} import {cls}",
        "from tailrace.events.publish import NewEvent, publish",
        "from tailrace.jobs.testing import assert_owed, run_owed",
    ]
    return _TEST.format(
        name=name,
        on=on,
        imports="\n".join(sorted(imports)),
        on_word=on.partition(".")[2],
        word=name.partition(".")[2],
        event=event.cls,
        payload=event.payload,
        cls=cls,
    )


class Command(BaseCommand):
    help = (
        "Add a handler to an app, its event type if that does not exist, and a test. Existing code"
        " is not changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "name", help="app.name, such as shop.send_receipt; also the name of its queue"
        )
        parser.add_argument("--on", required=True, help="the event type, such as shop.order_paid")

    def handle(self, *args: Any, name: str, on: str, **options: Any) -> None:
        refuse_installed()
        for path in create_handler(Path(settings.BASE_DIR), name, on):
            self.stdout.write(str(path.relative_to(settings.BASE_DIR)))
        self.stdout.write(
            "Next: write the payload of the event type and the code of the handler. `make run`"
            " loads them at once; elsewhere, run `manage.py migrate` and restart the workers."
        )

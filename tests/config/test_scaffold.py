"""`manage.py new_app` and `new_handler` write new files, and overwrite nothing.

test_run.py follows docs/how-to/new-handler.md, and so tests that the written files work.
"""

from pathlib import Path

import pytest
from django.core.management import CommandError

from tailrace.config.commands._scaffold import ScaffoldError, with_class
from tailrace.config.commands.new_app import APPS, create_app
from tailrace.config.commands.new_handler import create_handler
from tailrace.events.management.subcommands import call_subcommand
from tests.kit import ROOT


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder like the project's, with the list of apps and with a domain that is installed."""
    for name in ("config", "domains/photos", "tests/photos"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / APPS).write_text((ROOT / APPS).read_text())
    return tmp_path


def contents(base: Path) -> dict[str, str]:
    files = sorted(path for path in base.rglob("*") if path.is_file())
    return {str(path.relative_to(base)): path.read_text() for path in files}


def test_an_app_is_added_to_the_list_of_apps(base: Path) -> None:
    before = (base / APPS).read_text()
    written = create_app(base, "shop")
    assert [str(path.relative_to(base)) for path in written] == [
        "domains/shop/apps.py",
        "domains/shop/event_types.py",
        "domains/shop/handlers.py",
        "config/installed_apps.py",
    ]
    after = (base / APPS).read_text()
    assert [line for line in after.splitlines() if line not in before.splitlines()] == [
        '    "tailrace.domains.shop",'
    ]
    assert after.replace('    "tailrace.domains.shop",\n', "") == before
    assert (base / "tests/shop/__init__.py").is_file()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Shop", "'Shop' cannot be the name of an app: use small letters"),
        ("../shop", "cannot be the name of an app"),
        ("class", "cannot be the name of an app"),
        ("s" * 41, "more than 40 characters"),
        ("auth", "an app called 'auth' is installed already"),
        ("photo_book", "domains/photo_book exists already; nothing was written"),
    ],
)
def test_an_app_with_a_bad_name_is_refused(base: Path, name: str, problem: str) -> None:
    (base / "domains/photo_book").mkdir()
    before = contents(base)
    with pytest.raises(ScaffoldError, match=problem):
        create_app(base, name)
    assert contents(base) == before


def test_a_second_handler_is_added_to_what_is_there(base: Path) -> None:
    handlers = base / "domains/photos/handlers.py"
    mine = (
        '"""Mine."""\n\nimport json\n\nfrom tailrace.jobs.handler import Every\n\n'
        "kept = json, Every\n"
    )
    handlers.write_text(mine)
    create_handler(base, "photos.print_book", "photos.uploaded")
    create_handler(base, "photos.bind_book", "photos.book_printed")
    source = handlers.read_text()
    assert source.startswith(
        '"""Mine."""\n\nimport json\n\nfrom tailrace.domains.photos.event_types import '
        "BookPrinted, Uploaded\nfrom tailrace.jobs.handler import Every, Handler\n\n"
        "kept = json, Every\n"
    )
    assert source.count("(Handler):") == 2
    assert "class BookPrinted(EventType)" in (base / "domains/photos/event_types.py").read_text()
    test = (base / "tests/photos/test_print_book.py").read_text()
    assert "publish(NewEvent(Uploaded, {" in test
    compile(test, "test", "exec")
    before = contents(base)
    with pytest.raises(ScaffoldError, match=r"test_bind_book.py exists already"):
        create_handler(base, "photos.bind_book", "photos.uploaded")
    (base / "tests/photos/test_bind_book.py").unlink()
    with pytest.raises(ScaffoldError, match="has a class BindBook already"):
        create_handler(base, "photos.bind_book", "photos.uploaded")
    assert contents(base) == {
        name: text for name, text in before.items() if not name.endswith("test_bind_book.py")
    }


@pytest.mark.parametrize(
    ("name", "on", "problem"),
    [
        ("send", "photos.uploaded", "write app.name, such as shop.send_receipt"),
        ("photos.Send", "photos.uploaded", "'Send' cannot be the name of a handler"),
        ("phtos.send", "photos.uploaded", r"did you mean 'photos'\?; create it by"),
        ("photos.cluster", "photos.uploaded", "a handler called 'photos.cluster' exists already"),
        ("photos.send", "photo.uploaded", "no event type is called 'photo.uploaded'; did you mean"),
        ("photos.send", "records.record_published", "domains never import each other"),
    ],
)
def test_a_handler_with_a_bad_name_is_refused(base: Path, name: str, on: str, problem: str) -> None:
    before = contents(base)
    with pytest.raises(ScaffoldError, match=problem):
        create_handler(base, name, on)
    assert contents(base) == before


def test_the_commands_print_the_problem_in_one_line() -> None:
    with pytest.raises(CommandError, match="an app called 'photos' is installed already"):
        call_subcommand("new_app", "photos")
    with pytest.raises(CommandError, match="no app of domains/ is called 'shop'"):
        call_subcommand("new_handler", "shop.send_receipt", on="shop.order_paid")


def test_imports_stand_where_the_linter_wants_them() -> None:
    code = "class A:\n    pass"
    imports = {"pydantic": "BaseModel", "tailrace.events.types": "EventType"}
    assert with_class('"""Doc."""\n', imports, code) == (
        '"""Doc."""\n\nfrom pydantic import BaseModel\n\n'
        "from tailrace.events.types import EventType\n\n\n"
        "class A:\n    pass\n"
    )

"""An event in words: templates by lineage, and a plain line where they fail."""

from pathlib import Path

import pytest
from django.template import engines

from subscriptions.story import _report_missing, tell
from tests.subscriptions.stage import Gala, Premiere, happen

pytestmark = pytest.mark.django_db


@pytest.fixture
def templates(settings, tmp_path: Path) -> Path:
    """A folder of templates that is looked at first."""
    (tmp_path / "events").mkdir()
    settings.TEMPLATES = [settings.TEMPLATES[0] | {"DIRS": [str(tmp_path)]}]
    engines.__dict__.pop("templates", None)
    return tmp_path / "events"


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the names of the story's events that went to the log."""
    records = [record for record in caplog.records if record.name == "subscriptions.story"]
    return [record.msg["event"] for record in records if isinstance(record.msg, dict)]


def test_without_a_template_a_plain_line_is_told() -> None:
    story = tell(happen(payload={"title": "Faust <1>"}))
    assert story.title == story.text == "A play was shown for the first time: Faust <1>"
    assert story.html == "<p>A play was shown for the first time: Faust &lt;1&gt;</p>"


def test_the_most_particular_template_wins_and_only_html_is_escaped(templates: Path) -> None:
    (templates / "stage.premiere.title.txt").write_text("Premiere of {{ payload.title }}")
    (templates / "stage.gala.txt").write_text("Gala: {{ payload.title }}")
    (templates / "stage.premiere.html").write_text("<b>{{ payload.title }}</b>")
    story = tell(happen(Gala, payload={"title": "R&J"}))
    assert (story.title, story.text, story.html) == (
        "Premiere of R&J",
        "Gala: R&J",
        "<b>R&amp;J</b>",
    )


@pytest.mark.parametrize(
    "broken", ["{% if %}", "{% include 'no/such.txt' %}", "{% load nothing %}", "{{ event.bad }}"]
)
def test_a_template_that_raises_is_reported_and_stops_nothing(
    templates: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    (templates / "stage.premiere.txt").write_text(broken)
    event = happen(payload={"title": "Faust"})
    story = tell(event)
    assert story.text == "A play was shown for the first time: Faust"
    reported = [name for name in logged(caplog) if name == "story.template_failed"]
    assert len(reported) == (0 if "bad" in broken else 1)


def test_a_type_without_words_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    _report_missing.cache_clear()
    for _ in range(3):
        tell(happen(Premiere))
    assert logged(caplog) == ["story.no_template"]

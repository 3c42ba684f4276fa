"""An event in words: templates by topic_names, and a plain line where they fail."""

from pathlib import Path

import pytest
from django.template import engines

from tailrace.subscriptions.notifications.rendering import event_text
from tailrace.subscriptions.notifications.rendering.event_text import _report_missing, render_event
from tests.subscriptions.sample_domain import Gala, Premiere, publish_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def templates(settings, tmp_path: Path) -> Path:
    """A folder of templates that is looked at first."""
    folder = tmp_path / "tailrace" / "events"
    for name in ("stage.premiere", "stage.gala"):
        (folder / name).mkdir(parents=True)
    settings.TEMPLATES = [settings.TEMPLATES[0] | {"DIRS": [str(tmp_path)]}]
    engines.__dict__.pop("templates", None)
    return folder


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the names of the module's events that went to the log."""
    records = [record for record in caplog.records if record.name == event_text.__name__]
    return [record.msg["event"] for record in records if isinstance(record.msg, dict)]


def test_without_a_template_the_text_is_a_plain_line() -> None:
    event_text = render_event(publish_event(payload={"title": "Faust <1>"}))
    assert event_text.title == event_text.text == "A play was shown for the first time: Faust <1>"
    assert event_text.html == "<p>A play was shown for the first time: Faust &lt;1&gt;</p>"


def test_the_most_particular_template_counts(templates: Path) -> None:
    (templates / "stage.premiere/title.txt").write_text("Premiere of {{ payload.title }}")
    (templates / "stage.gala/text.txt").write_text("Gala: {{ payload.title }}")
    (templates / "stage.premiere/text.html").write_text("<b>{{ payload.title }}</b>")
    event_text = render_event(publish_event(Gala, payload={"title": "R&J"}))
    assert (event_text.title, event_text.text, event_text.html) == (
        "Premiere of R&J",
        "Gala: R&J",
        "<b>R&amp;J</b>",
    )


@pytest.mark.parametrize(
    "broken", ["{% if %}", "{% include 'no/such.txt' %}", "{% load nothing %}", "{{ event.bad }}"]
)
def test_a_template_that_raises_is_logged(
    templates: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    (templates / "stage.premiere/text.txt").write_text(broken)
    event = publish_event(payload={"title": "Faust"})
    event_text = render_event(event)
    assert event_text.text == "A play was shown for the first time: Faust"
    reported = [name for name in logged(caplog) if name == "event_text.template_failed"]
    assert len(reported) == (0 if "bad" in broken else 1)


def test_a_missing_template_is_logged_once_and_is_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _report_missing.cache_clear()
    render_event(publish_event(Premiere))
    assert logged(caplog) == []
    _report_missing.cache_clear()
    with caplog.at_level("DEBUG", logger=event_text.__name__):
        for _ in range(3):
            render_event(publish_event(Premiere))
    assert logged(caplog) == ["event_text.no_template"]

"""A state has one colour: as a badge on pages, and as a label in the lists of the admin."""

import re

import pytest
from django.contrib.staticfiles import finders

from tailrace.jobs.platform.admin.events import EventAdmin
from tailrace.jobs.platform.admin.queues import COLOURS as QUEUE_COLOURS
from tailrace.jobs.platform.admin.rendering import STATE_COLOURS
from tailrace.jobs.platform.inspection.details.chain import STYLES
from tailrace.jobs.platform.inspection.display.formatting import STATE_LABELS
from tailrace.jobs.platform.inspection.queue_states import MEANINGS

UNFOLD = {
    "default": "plain",
    "info": "info",
    "primary": "info",
    "success": "good",
    "warning": "warn",
    "danger": "bad",
}


@pytest.fixture(scope="module")
def badges() -> dict[str, str]:
    """The colour of each badge by the state's name, from the style sheet."""
    path = finders.find("tailrace/jobs/state_badges.css")
    assert isinstance(path, str)
    with open(path) as file:
        rules = re.findall(r"^(\.tr-state.*){ background: var\(--tr-(\w+)-bg\)", file.read(), re.M)
    colours = {
        name: colour
        for names, colour in rules
        for name in re.findall(r"\.tr-state\.tr-(\w+)", names)
    }
    assert len(colours) == 9
    return colours


def test_a_job_has_the_same_colour_on_its_page_and_in_lists(badges: dict[str, str]) -> None:
    for state, label in STATE_LABELS.items():
        assert badges.get(state, "plain") == UNFOLD[STATE_COLOURS[label]], state
    for label in STATE_COLOURS.keys() - STATE_LABELS.values():
        assert label in ("scheduled", "retry scheduled")
        assert badges["pending"] == UNFOLD[STATE_COLOURS[label]]


def test_a_queue_has_the_same_colour_on_its_page_and_in_lists(badges: dict[str, str]) -> None:
    assert QUEUE_COLOURS.keys() == MEANINGS.keys()
    for state, colour in QUEUE_COLOURS.items():
        assert badges.get(state, "plain") == UNFOLD[colour], state


def test_an_event_has_the_same_colour_in_its_chain_and_in_lists(badges: dict[str, str]) -> None:
    labels = EventAdmin.state.label  # type: ignore[attr-defined]
    for state, style in STYLES.items():
        assert badges.get(style, "plain") == UNFOLD[labels.get(state, "default")], state

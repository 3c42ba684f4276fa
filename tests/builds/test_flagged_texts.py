"""Texts of events whose payload lacks keys: they are flagged, and go out all the same."""

import re
from dataclasses import replace

import pytest

from tailrace.domains.builds.event_types.catalogue import builds_types
from tailrace.events.catalog.samples import sample_event
from tailrace.events.types import get_type
from tailrace.subscriptions.notifications.rendering.event_text import render_event

HOLES = re.compile(r"in /|/ |/$|/\.|  | \.|is now$|of failed|commented on$|: *$")


@pytest.mark.django_db
def test_a_flagged_event_goes_out_without_holes_in_its_title() -> None:
    for event_type in builds_types():
        whole = sample_event(event_type)
        flagged = replace(whole, raw_payload={}, subject="")
        title = render_event(flagged).title
        assert title, event_type.name
        assert not HOLES.search(title), (event_type.name, title)


@pytest.mark.django_db
def test_a_failed_build_without_repository_says_only_what_is_known() -> None:
    payload = {"project": "devel", "package": "hello"}
    event = replace(
        sample_event(get_type("builds.build_fail")), raw_payload=payload, subject="devel/hello"
    )
    text = render_event(event)
    assert text.title == "Build of devel/hello failed"
    assert text.text.splitlines()[0] == "Package devel/hello failed to build."
    assert "failed to build.</p>" in text.html
    whole = replace(event, raw_payload={"repository": "standard", "arch": "i586"})
    assert render_event(whole).title == "Build of devel/hello failed in standard/i586"

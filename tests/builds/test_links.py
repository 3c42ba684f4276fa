"""Notifications of events link to the pages of the build service about them."""

from dataclasses import replace
from typing import Any

import pytest

from tailrace.domains.builds.event_types.catalogue import builds_types
from tailrace.events.catalog.samples import sample_event
from tailrace.events.types import get_type
from tailrace.subscriptions.notifications.rendering.event_text import render_event
from tailrace.subscriptions.types.subscribable import is_subscribable, link_of

WEB = "https://build.example.org"
PACKAGE = {"project": "home:alice", "package": "hello"}


@pytest.fixture(autouse=True)
def _web(settings: Any) -> None:
    settings.OBS_WEB_URL = f"{WEB}/"


def link(name: str, payload: dict[str, Any]) -> str:
    return link_of(replace(sample_event(get_type(name)), raw_payload=payload))


@pytest.mark.parametrize(
    ("name", "payload", "page"),
    [
        (
            "builds.build_fail",
            {**PACKAGE, "repository": "standard", "arch": "x86_64"},
            "/package/live_build_log/home:alice/hello/standard/x86_64",
        ),
        ("builds.build_fail", PACKAGE, "/package/show/home:alice/hello"),
        (
            "builds.service_fail",
            {"project": "a", "package": "g++/?#"},
            "/package/show/a/g++%2F%3F%23",
        ),
        (
            "builds.comment_for_project",
            {"project": "home:alice", "id": 3},
            "/project/show/home:alice",
        ),
        ("builds.request_create", {"number": 7, "id": 9}, "/request/show/7"),
        ("builds.comment_for_request", {"number": 7}, "/request/show/7"),
        ("builds.comment_for_report", {"report_id": 5, "id": 9}, "/reports/5"),
        ("builds.report_for_user", {"id": 5}, "/reports/5"),
        ("builds.cleared_decision", {"id": 1, "report_last_id": 5}, "/reports/5"),
        ("builds.appeal_created", {"id": 8, "report_last_id": 5}, "/appeals/8"),
        ("builds.workflow_run_fail", {"id": 8, "token_id": 3}, "/my/tokens/3"),
        ("builds.added_user_to_group", {"group": "release team"}, "/groups/release%20team"),
    ],
)
def test_an_event_links_to_the_page_about_it(name: str, payload: dict[str, Any], page: str) -> None:
    assert link(name, payload) == f"{WEB}{page}"


def test_each_type_that_people_are_notified_of_has_a_page() -> None:
    types = [event_type for event_type in builds_types() if is_subscribable(event_type)]
    assert len(types) > 20
    assert [each.name for each in types if not link_of(sample_event(each))] == []


def test_without_an_address_there_is_no_link(settings: Any) -> None:
    settings.OBS_WEB_URL = ""
    assert link("builds.build_fail", PACKAGE) == ""


@pytest.mark.django_db
def test_a_mail_has_the_link() -> None:
    event = replace(sample_event(get_type("builds.service_fail")), raw_payload=PACKAGE)
    assert render_event(event).link == f"{WEB}/package/show/home:alice/hello"

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection

from domains.builds.event_types import builds_types
from domains.builds.holders import Place, holders
from domains.builds.models import Package, RoleHolder, TokenHolder, Watch
from events.publish import NewEvent, Recorded, publish
from subscriptions import roles
from subscriptions.roles import Receivers

pytestmark = pytest.mark.django_db


def holder(who: str, role: str, project: str, package: str = "") -> None:
    """Give a role to a user, or with an @ before the name to a group."""
    kind = {"group": who[1:]} if who.startswith("@") else {"user": who}
    RoleHolder.objects.create(backend="main", project=project, package=package, role=role, **kind)


def happen(type: str, **payload: Any) -> Recorded:
    return publish([NewEvent(f"builds.{type}", payload, source="obs:main:1")])[0]


def ask(role: str, event: Recorded) -> str:
    """Return who holds the role, e.g. `alice @team`."""
    found = roles.get(role)(event)
    return " ".join([*sorted(found.users), *(f"@{group}" for group in sorted(found.groups))])


def fail(package: str = "hello") -> Recorded:
    return happen("build_fail", project="home:alice", package=package, repository="r", arch="a")


def test_every_role_of_the_catalogue_is_declared() -> None:
    named = {role for found in builds_types() for role in found.receiver_roles}
    assert len(named) >= 20
    assert [name for name in sorted(named) if roles.find(name) is None] == []


@pytest.mark.parametrize("role", ["maintainer", "bugowner", "reader"])
def test_a_package_with_holders_of_its_own_asks_nobody_else(role: str) -> None:
    holder("carol", role, "home:alice", "hello")
    holder("@team", role, "home:alice", "hello")
    holder("alice", role, "home:alice")
    holder("eve", "other", "home:alice", "hello")
    assert ask(role, fail()) == "carol @team"


def test_a_package_without_falls_back_to_its_project_and_where_it_is_developed() -> None:
    holder("alice", "maintainer", "home:alice")
    holder("dora", "maintainer", "devel", "hello-devel")
    holder("dave", "maintainer", "devel")
    Package.objects.create(
        backend="main", project="home:alice", name="hello",
        devel_project="devel", devel_package="hello-devel",
    )  # fmt: skip
    assert ask("maintainer", fail()) == "alice dora"
    RoleHolder.objects.filter(user="dora").delete()
    assert ask("maintainer", fail()) == "alice dave"


def test_an_unknown_package_has_its_projects_holders_and_an_unknown_project_nobody() -> None:
    holder("alice", "bugowner", "home:alice")
    assert ask("bugowner", fail("unknown")) == "alice"
    RoleHolder.objects.all().delete()
    assert ask("bugowner", fail()) == ""


def test_another_backends_holders_are_not_meant() -> None:
    RoleHolder.objects.create(backend="other", project="home:alice", role="reader", user="eve")
    assert ask("reader", fail()) == ""


def watch(login: str, **what: Any) -> User:
    user, _created = User.objects.get_or_create(username=login)
    Watch.objects.create(user=user, **what)
    return user


def test_watchers_of_a_project_and_of_a_package_are_told_apart() -> None:
    watch("pia", project="home:alice")
    watch("pam", project="home:alice", package="hello")
    assert ask("project_watcher", fail()) == "pia"
    assert ask("package_watcher", fail()) == "pam"
    assert ask("package_watcher", fail("other")) == ""


ACTIONS = [
    {"type": "submit", "sourceproject": "home:alice", "sourcepackage": "hello",
     "targetproject": "openSUSE:Factory", "targetpackage": "hello"},
    {"type": "delete", "targetproject": "openSUSE:Factory", "targetpackage": "old"},
    {"type": "odd", "sourceproject": 7, "sourcepackage": None},
    "not an action",
]  # fmt: skip


def request(type: str = "request_statechange", **more: Any) -> Recorded:
    actions = [action for action in ACTIONS if isinstance(action, dict)]
    return happen(type, number=42, author="alice", actions=actions, **more)


def test_roles_from_a_requests_actions() -> None:
    holder("alice", "maintainer", "home:alice", "hello")
    holder("fred", "maintainer", "openSUSE:Factory", "hello")
    holder("olga", "maintainer", "openSUSE:Factory", "old")
    watch("pia", project="home:alice")
    watch("pam", project="openSUSE:Factory", package="old")
    watch("pit", project="openSUSE:Factory")
    watch("rob", request=42)
    watch("ron", request=43)
    event = request()
    assert ask("source_maintainer", event) == "alice"
    assert ask("target_maintainer", event) == "fred olga"
    assert ask("source_project_watcher", event) == "pia"
    assert ask("target_project_watcher", event) == "pit"
    assert ask("source_package_watcher", event) == ""
    assert ask("target_package_watcher", event) == "pam"
    assert ask("request_watcher", event) == "rob"
    assert ask("creator", event) == "alice"


def test_reviewers_by_user_group_project_and_package() -> None:
    holder("mara", "maintainer", "devel")
    holder("paul", "maintainer", "devel", "tool")
    asked = [
        {"by_user": "uma"},
        {"by_group": "legal"},
        {"by_project": "devel"},
        {"by_project": "devel", "by_package": "tool"},
        "odd",
    ]
    event = request("review_wanted", reviewers=asked, by_user="ugo")
    assert ask("reviewer", event) == "mara paul ugo uma @legal"


def test_roles_that_the_event_names_itself() -> None:
    assert ask("commenter", happen(
        "comment_for_project", project="p", commenters=["ann", "ben"], commenter="cid", id=1,
    )) == "ann ben cid"  # fmt: skip
    assert ask("any_role", happen("relationship_create", project="p", user="ann")) == "ann"
    assert ask("any_role", happen("relationship_delete", project="p", group="team")) == "@team"
    assert ask("member", happen("added_user_to_group", group="team", member="ben")) == "ben"
    assert ask("assignee", happen(
        "assignment_create", project="p", package="q", assignee="cid")) == "cid"  # fmt: skip


def test_moderators_hold_the_permission_themselves_or_by_a_group() -> None:
    may = Permission.objects.get(codename="moderate", content_type__app_label="builds")
    User.objects.create(username="own").user_permissions.add(may)
    team = Group.objects.create(name="moderators")
    team.permissions.add(may)
    User.objects.create(username="byteam").groups.add(team)
    User.objects.create(username="left", is_active=False).groups.add(team)
    User.objects.create(username="root", is_superuser=True)
    assert ask("moderator", happen("report_for_user", id=7, accused="eve")) == "byteam own"


def test_a_decision_reaches_who_reported_and_who_was_reported() -> None:
    holder("mona", "maintainer", "home:eve", "bad")
    happen("report_for_user", id=7, reporter="rita", accused="eve", reportable_type="User")
    happen("report_for_package", id=8, reporter="rolf", reportable_type="Package",
           project_name="home:eve", package_name="bad")  # fmt: skip
    user = happen("cleared_decision", id=1, report_last_id=7)
    package = happen("favored_decision", id=2, report_last_id="8")
    assert (ask("reporter", user), ask("offender", user)) == ("rita", "eve")
    assert (ask("reporter", package), ask("offender", package)) == ("rolf", "mona")
    assert ask("reporter", happen("cleared_decision", id=3, report_last_id=99)) == ""


def test_holders_of_a_token() -> None:
    TokenHolder.objects.create(token=5, role="executor", user="ann")
    TokenHolder.objects.create(token=5, role="member", group="team")
    event = happen("workflow_run_fail", id=1, token_id=5)
    assert ask("token_executor", event) == "ann"
    assert ask("token_member", event) == "@team"


def test_a_request_of_a_thousand_actions_is_one_statement(
    django_assert_num_queries: Callable,
) -> None:
    for number in range(1000):
        holder(f"m{number}", "maintainer", f"p{number}")
    places = [Place(f"p{number}", "q") for number in range(1000)]
    with django_assert_num_queries(1):
        assert len(holders("main", "maintainer", places).users) == 1000


def test_who_holds_what_is_read_from_the_index() -> None:
    RoleHolder.objects.bulk_create(
        RoleHolder(backend="main", project=f"p{n % 2000}", package=f"q{n}", role="maintainer",
                   user=f"u{n}")
        for n in range(20_000)
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE builds_roleholder")
        cursor.execute(
            "EXPLAIN SELECT 1 FROM builds_roleholder WHERE backend = 'main' AND project = 'p5'"
            " AND package = 'q5' AND role = 'maintainer'"
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "role_held_once" in plan
    assert holders("main", "maintainer", [Place("p5", "q5")]) == Receivers.of(["u5"])

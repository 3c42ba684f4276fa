from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection

from tailrace.db import clock
from tailrace.domains.builds.audience.receivers import PackageRef, holders
from tailrace.domains.builds.event_types.catalogue import builds_types
from tailrace.domains.builds.models import Package, RoleHolder, TokenHolder, Watch
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.subscriptions.types import roles
from tailrace.subscriptions.types.roles import Receivers

pytestmark = pytest.mark.django_db


def holder(who: str, role: str, project: str, package: str = "") -> None:
    """Give a role to a user, or with an @ before the name to a group."""
    kind = {"group": who[1:]} if who.startswith("@") else {"user": who}
    RoleHolder.objects.create(backend="main", project=project, package=package, role=role, **kind)


def happen(type: str, **payload: Any) -> Recorded:
    return publish([NewEvent(f"builds.{type}", payload, source="obs:main:1")])[0]


def holders_of(role: str, event: Recorded) -> str:
    """Return who holds the role, e.g. `alice @team`."""
    receivers = roles.find(role)(event)
    return " ".join(
        [*sorted(receivers.users), *(f"@{group}" for group in sorted(receivers.groups))]
    )


def fail(package: str = "hello") -> Recorded:
    return happen("build_fail", project="home:alice", package=package, repository="r", arch="a")


def test_every_role_of_the_catalogue_is_declared() -> None:
    names = {role for event_type in builds_types() for role in event_type.receiver_roles}
    assert len(names) >= 20
    assert [name for name in sorted(names) if roles.find(name) is None] == []


def devel(package: str, of: str, project: str = "home:alice") -> None:
    """Store that `of` is the package where `package` is developed, e.g. `devel/hello`."""
    devel_project, devel_package = of.split("/")
    Package.objects.create(
        backend="main", project=project, name=package,
        devel_project=devel_project, devel_package=devel_package,
    )  # fmt: skip


@pytest.mark.parametrize("role", ["maintainer", "bugowner", "reader"])
def test_a_package_with_holders_uses_only_its_own(role: str) -> None:
    holder("carol", role, "home:alice", "hello")
    holder("@team", role, "home:alice", "hello")
    holder("alice", role, "home:alice")
    holder("eve", "other", "home:alice", "hello")
    assert holders_of(role, fail()) == "carol @team"


def test_a_package_falls_back_to_its_project_and_devel_package() -> None:
    holder("alice", "maintainer", "home:alice")
    holder("dora", "maintainer", "devel", "hello-devel")
    holder("dave", "maintainer", "devel")
    devel("hello", "devel/hello-devel")
    assert holders_of("maintainer", fail()) == "alice dora"
    RoleHolder.objects.filter(user="dora").delete()
    assert holders_of("maintainer", fail()) == "alice dave"


def test_a_new_version_upstream_concerns_those_who_develop_the_package() -> None:
    holder("alice", "maintainer", "home:alice", "hello")
    holder("dora", "maintainer", "devel", "hello-devel")
    names = {"project": "home:alice", "package": "hello", "upstream_version": "2.0"}
    event, role = (
        happen("upstream_package_version_changed", **names),
        ("develpackage_or_package_maintainer"),
    )
    assert holders_of(role, event) == "alice"
    Package.objects.create(
        backend="main", project="home:alice", name="hello",
        devel_project="devel", devel_package="hello-devel",
    )  # fmt: skip
    assert holders_of(role, event) == "dora"


def test_the_maintainers_of_the_devel_package_are_always_notified() -> None:
    holder("carol", "maintainer", "home:alice", "hello")
    holder("alice", "maintainer", "home:alice")
    holder("dora", "maintainer", "devel", "hello-devel")
    devel("hello", "devel/hello-devel")
    assert holders_of("maintainer", fail()) == "carol dora"
    holder("erin", "maintainer", "upstream", "hello")
    devel("hello-devel", "upstream/hello", "devel")
    assert holders_of("maintainer", fail()) == "carol dora erin", "of its devel package, too"
    devel("hello", "home:alice/hello", "upstream")
    assert holders_of("maintainer", fail()) == "carol dora erin", "a circle ends"
    Package.objects.filter(project="devel").update(gone_at=clock.now())
    assert holders_of("maintainer", fail()) == "carol dora"


def test_a_flavour_of_a_package_has_its_holders_and_watchers() -> None:
    holder("carol", "maintainer", "home:alice", "hello")
    holder("alice", "maintainer", "home:alice")
    watch("pam", project="home:alice", package="hello")
    watch("pia", project="home:alice", package="hello:qt")
    assert holders_of("maintainer", fail("hello:qt")) == "carol"
    assert holders_of("package_watcher", fail("hello:qt")) == "pam pia"
    assert holders_of("package_watcher", fail("hello:gtk")) == "pam"
    assert holders_of("package_watcher", fail("hello")) == "pam"
    holder("prod", "maintainer", "home:alice", "_product:sle")
    assert holders_of("maintainer", fail("_product:sle")) == "prod", "no flavour"


def test_an_unknown_package_has_the_holders_of_its_project() -> None:
    holder("alice", "bugowner", "home:alice")
    assert holders_of("bugowner", fail("unknown")) == "alice"
    RoleHolder.objects.all().delete()
    assert holders_of("bugowner", fail()) == ""


def test_holders_of_other_backends_are_ignored() -> None:
    RoleHolder.objects.create(backend="other", project="home:alice", role="reader", user="eve")
    assert holders_of("reader", fail()) == ""


def watch(login: str, **what: Any) -> User:
    user, _created = User.objects.get_or_create(username=login)
    Watch.objects.create(user=user, **what)
    return user


def test_watchers_of_projects_and_packages_are_separate() -> None:
    watch("pia", project="home:alice")
    watch("pam", project="home:alice", package="hello")
    assert holders_of("project_watcher", fail()) == "pia"
    assert holders_of("package_watcher", fail()) == "pam"
    assert holders_of("package_watcher", fail("other")) == ""


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
    assert holders_of("source_maintainer", event) == "alice"
    assert holders_of("target_maintainer", event) == "fred olga"
    assert holders_of("source_project_watcher", event) == "pia"
    assert holders_of("target_project_watcher", event) == "pit"
    assert holders_of("source_package_watcher", event) == ""
    assert holders_of("target_package_watcher", event) == "pam"
    assert holders_of("request_watcher", event) == "rob"
    assert holders_of("creator", event) == "alice"


def test_reviewers_by_user_group_project_and_package() -> None:
    holder("mara", "maintainer", "devel")
    holder("paul", "maintainer", "devel", "tool")
    reviewers = [
        {"by_user": "uma"},
        {"by_group": "legal"},
        {"by_project": "devel"},
        {"by_project": "devel", "by_package": "tool"},
        "odd",
    ]
    event = request("review_wanted", reviewers=reviewers, by_user="ugo")
    assert holders_of("reviewer", event) == "mara paul ugo uma @legal"


def test_roles_that_the_event_names_itself() -> None:
    assert holders_of("commenter", happen(
        "comment_for_project", project="p", commenters=["ann", "ben"], commenter="cid", id=1,
    )) == "ann ben cid"  # fmt: skip
    assert holders_of("any_role", happen("relationship_create", project="p", user="ann")) == "ann"
    assert (
        holders_of("any_role", happen("relationship_delete", project="p", group="team")) == "@team"
    )
    assert holders_of("member", happen("added_user_to_group", group="team", member="ben")) == "ben"
    assert holders_of("assignee", happen(
        "assignment_create", project="p", package="q", assignee="cid")) == "cid"  # fmt: skip


def test_moderators_have_the_permission_or_are_in_a_group() -> None:
    may = Permission.objects.get(codename="moderate", content_type__app_label="tailrace_builds")
    User.objects.create(username="own").user_permissions.add(may)
    team = Group.objects.create(name="moderators")
    team.permissions.add(may)
    User.objects.create(username="byteam").groups.add(team)
    User.objects.create(username="left", is_active=False).groups.add(team)
    User.objects.create(username="root", is_superuser=True)
    assert holders_of("moderator", happen("report_for_user", id=7, accused="eve")) == "byteam own"


def test_without_moderators_admins_and_staff_are_notified() -> None:
    User.objects.create(username="root", is_superuser=True)
    User.objects.create(username="staff", is_staff=True)
    User.objects.create(username="left", is_staff=True, is_active=False)
    User.objects.create(username="eve")
    report = happen("report_for_user", id=7, accused="eve")
    assert holders_of("moderator", report) == "root staff"
    may = Permission.objects.get(codename="moderate", content_type__app_label="tailrace_builds")
    User.objects.create(username="own").user_permissions.add(may)
    assert holders_of("moderator", report) == "own"


def test_a_decision_notifies_reporter_and_offender() -> None:
    holder("mona", "maintainer", "home:eve", "bad")
    happen("report_for_user", id=7, reporter="rita", accused="eve", reportable_type="User")
    happen("report_for_package", id=8, reporter="rolf", reportable_type="Package",
           project_name="home:eve", package_name="bad")  # fmt: skip
    user = happen("cleared_decision", id=1, report_last_id=7)
    package = happen("favored_decision", id=2, report_last_id="8")
    assert (holders_of("reporter", user), holders_of("offender", user)) == ("rita", "eve")
    assert (holders_of("reporter", package), holders_of("offender", package)) == ("rolf", "mona")
    assert holders_of("reporter", happen("cleared_decision", id=3, report_last_id=99)) == ""


def test_holders_of_a_token() -> None:
    TokenHolder.objects.create(token=5, role="executor", user="ann")
    TokenHolder.objects.create(token=5, role="member", group="team")
    event = happen("workflow_run_fail", id=1, token_id=5)
    assert holders_of("token_executor", event) == "ann"
    assert holders_of("token_member", event) == "@team"


def test_a_request_of_a_thousand_actions_is_one_statement(
    django_assert_num_queries: Callable,
) -> None:
    for number in range(1000):
        holder(f"m{number}", "maintainer", f"p{number}")
    packages = [PackageRef(f"p{number}", "q") for number in range(1000)]
    with django_assert_num_queries(1):
        assert len(holders("main", "maintainer", packages).users) == 1000


def test_holders_are_read_from_the_index() -> None:
    RoleHolder.objects.bulk_create(
        RoleHolder(backend="main", project=f"p{n % 2000}", package=f"q{n}", role="maintainer",
                   user=f"u{n}")
        for n in range(20_000)
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tailrace_builds_roleholder")
        cursor.execute(
            "EXPLAIN SELECT 1 FROM tailrace_builds_roleholder WHERE backend = 'main'"
            " AND project = 'p5' AND package = 'q5' AND role = 'maintainer'"
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "tailrace_role_held_once" in plan
    assert holders("main", "maintainer", [PackageRef("p5", "q5")]) == Receivers.of(["u5"])

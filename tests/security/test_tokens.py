"""What the holder of a token for events got: the voice of the whole build service."""

from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError
from django.http import HttpResponse
from django.test import Client

from tailrace.domains.builds.models import Package, Project
from tailrace.events.catalog.topics import topic_name
from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tailrace.subscriptions.api.recording.cloudevents import BATCHED, STRUCTURED
from tailrace.subscriptions.models import ApiToken
from tailrace.web.accounts import tokens
from tests.servers.source import PAYLOAD_KEY, Source, source
from tests.subscriptions.sample_domain import Play, person
from tests.web.program import Program, allow, problem
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)
PLAY = topic_name(Play)
COMMIT = {"project": "devel", "package": "hello", "rev": "7", "comment": "mine"}
PACKTRACK = {"project": "home:alice", "repo": "standard", "payload": PAYLOAD_KEY}


@pytest.fixture
def backend(settings) -> Iterator[Source]:
    with source() as server:
        settings.OBS_BACKENDS = {"main": server.url}
        yield server


def of_token(*event_types: str, event_source: str = "/ci", login: str = "ann") -> Program:
    """A program whose token may record these types alone."""
    user = person(login)
    allow(user, "tailrace_events.add_event")
    result = Program(user, "feeds")
    _token, text = tokens.make(
        user, "ci", ["events:write"], event_types=event_types, event_source=event_source
    )
    result.client = Client(headers={"Authorization": f"Bearer {text}"})
    return result


def send(program: Program, type: str, data: dict[str, Any], **fields: Any) -> HttpResponse:
    event = {"specversion": "1.0", "id": "1", "source": "/ci", "type": type, "data": data}
    return program.post("/events", event | fields, content_type=STRUCTURED)


def test_no_forged_packtrack_deletes_a_payload_at_the_backend(
    backend: Source, run_jobs: Callable
) -> None:
    everything = of_token(*tokens.event_type_names())
    assert send(everything, "builds.packtrack", PACKTRACK).status_code == 201
    run_jobs("builds.update_released_binaries")
    assert backend.requests == []
    for source_ in ("local", "api:ann:obs:main:1", "obs", "bus", "obs:"):
        publish(NewEvent("builds.packtrack", PACKTRACK, source=source_))
    run_jobs("builds.update_released_binaries")
    assert backend.requests == []


def test_a_job_of_a_forged_packtrack_that_waited_from_before_is_skipped(
    backend: Source, run_jobs: Callable
) -> None:
    (event,) = publish(NewEvent("builds.packtrack", PACKTRACK, source="api:ann:/ci"))
    Job.objects.create(
        handler="builds.update_released_binaries",
        event_id=event.id,
        due_at=event.recorded_at,
        lane="main:home:alice/standard",
    )
    run_jobs("builds.update_released_binaries")
    row = Job.objects.get(handler="builds.update_released_binaries")
    assert (row.state, backend.requests) == ("skipped", [])
    assert "its source is 'api:ann:/ci'" in row.error


def test_no_forged_commit_asks_the_backend_for_metadata(
    backend: Source, run_jobs: Callable
) -> None:
    everything = of_token(*tokens.event_type_names())
    assert send(everything, "builds.commit", COMMIT).status_code == 201
    run_jobs("builds.update_backend_infos")
    assert backend.requests == []
    assert not Package.objects.exists()


def test_the_backends_own_events_still_act_at_it(
    backend: Source, run_jobs: Callable, settings: Any
) -> None:
    settings.OBS_NOPRUNE = False
    publish(NewEvent("builds.packtrack", PACKTRACK, source="obs:main:1"))
    run_jobs("builds.update_released_binaries")
    assert backend.requests[-1] == f"DELETE /notificationpayload/{PAYLOAD_KEY}"


def test_no_forged_deletion_ends_a_projects_log(backend: Source, run_jobs: Callable) -> None:
    everything = of_token(*tokens.event_type_names())
    publish(NewEvent("builds.create_project", {"project": "devel"}, source="obs:main:1"))
    run_jobs("builds.project_log")
    assert send(everything, "builds.delete_project", {"project": "devel"}).status_code == 201
    run_jobs("builds.project_log")
    assert Project.objects.get(name="devel").exists is True


def test_no_commit_by_linus_is_in_the_public_feed(run_jobs: Callable) -> None:
    ann = of_token("builds.commit")
    for forged in ({"user": "linus"}, {"sender": "linus"}, {"user": "ann", "sender": "linus"},
                   {"sender": "ann", "user": "linus"}, {"author": "linus"}):  # fmt: skip
        result = problem(send(ann, "builds.commit", COMMIT | forged), 403, "event-not-allowed")
        assert "'linus'" in result["detail"]
    assert send(ann, "builds.commit", COMMIT | {"user": "ann"}).status_code == 201
    assert send(ann, "builds.commit", COMMIT | {"rev": "8"}, id="2").status_code == 201
    run_jobs("builds.project_log")
    feed = Client().get("/feeds/projects/devel.atom").content.decode()
    assert feed.count("<name>ann</name>") == 2
    assert "linus" not in feed


def test_no_event_of_another_family_is_recorded() -> None:
    ann = of_token("builds.build_fail", "stage.premiere")
    for type, data in (
        ("builds.commit", COMMIT), ("builds.packtrack", PACKTRACK), ("stage.rehearsal", {}),
        ("builds.sync_lost", {"backend": "main", "from": 1, "to": 2}),
        ("events.quarantined", {"type": "x", "reason": "y"}),
    ):  # fmt: skip
        problem(send(ann, type, data), 403, "event-not-allowed")
    assert send(ann, "stage.premiere", {"title": "Faust"}).status_code == 201
    assert send(ann, "stage.gala", {"title": "Faust"}, id="2").status_code == 201, "derived from it"
    assert Event.objects.count() == 2


def test_the_platforms_own_events_are_nobodys() -> None:
    ann = of_token(*tokens.event_type_names())
    for type in ("builds.sync_lost", "builds.log_reset", "builds.unknown", "events.quarantined"):
        result = problem(send(ann, type, {}), 403, "event-not-allowed")
        assert "only the platform may record" in result["detail"]
        with pytest.raises(tokens.WrongToken):
            tokens.make(ann.user, "x", ["events:write"], event_types=[type], event_source="/ci")


def test_no_event_has_the_source_of_another_token() -> None:
    ann = of_token(PLAY)
    for other in ("/cd", "obs:main:1", "local", "/ci/", "/CI"):
        result = problem(send(ann, "stage.premiere", {}, source=other), 403, "event-not-allowed")
        assert result["errors"][0]["pointer"] == "#/source"
    binary = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/cd", "ce-type": "stage.gala"}
    problem(ann.post("/events", {}, headers=binary), 403, "event-not-allowed")
    batch = [{"specversion": "1.0", "id": str(n), "source": s, "type": "stage.gala", "data": {}}
             for n, s in enumerate(("/ci", "/cd"))]  # fmt: skip
    result = problem(ann.post("/events", batch, content_type=BATCHED), 403, "event-not-allowed")
    assert [fault["pointer"] for fault in result["errors"]] == ["#/1/source"]
    assert not Event.objects.exists()
    assert send(ann, "stage.premiere", {}).status_code == 201
    assert Event.objects.get().source == "api:ann:/ci"


def test_a_token_from_before_records_nothing() -> None:
    ann = of_token(PLAY)
    ApiToken.objects.filter(name="ci").update(event_types=[], event_source="")
    for source_ in ("/ci", "obs:main:1"):
        result = problem(send(ann, "stage.premiere", {}, source=source_), 403, "event-not-allowed")
        assert "create another token" in result["detail"]
    assert not Event.objects.exists()


def test_a_browsers_session_records_nothing() -> None:
    user = person("ann")
    allow(user, "tailrace_events.add_event")
    event = {"specversion": "1.0", "id": "1", "source": "obs:main:1", "type": "stage.premiere"}
    answer = Visitor(user).post("/api/events", event, content_type=STRUCTURED)
    assert "send a token" in problem(answer, 403)["detail"]
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    ("scopes", "event_types", "event_source", "why"),
    [
        (["events:write"], [], "/ci", "needs the event types"),
        (["events:write"], [PLAY], "", "needs the event types"),
        (["events:write"], ["*"], "/ci", "name each family"),
        (["events:write"], ["stage.galla"], "/ci", "did you mean 'stage.gala'"),
        (["events:write"], [PLAY], "a\nb", "a path or URI"),
        (["events:write"], [PLAY], "x" * 41, "at most 40 characters"),
        (["feeds"], [PLAY], "/ci", "need the scope events:write"),
    ],
)
def test_no_token_for_everything_is_made(scopes, event_types, event_source, why) -> None:
    with pytest.raises(tokens.WrongToken, match=why):
        tokens.make(person("ann"), "ci", scopes, event_types=event_types, event_source=event_source)


def test_types_and_source_are_chosen_on_the_page() -> None:
    user = person("ann")
    form = {"name": "ci", "scopes": ["events:write"], "days": "30"}
    answer = Visitor(user).post("/me/preferences/tokens", form)
    assert answer.status_code == 422
    form |= {"event_types": f"{PLAY}, builds.build", "event_source": "/ci"}
    assert Visitor(user).post("/me/preferences/tokens", form).status_code == 200
    token = ApiToken.objects.get()
    assert (token.event_types, token.event_source) == (["builds.build", PLAY], "/ci")
    assert f"builds.build, {PLAY} as /ci" in Visitor(user).text("/me/preferences")


def test_types_and_source_are_chosen_by_command() -> None:
    person("ann")
    arguments = {"name": "ci", "scopes": "events:write", "stdout": StringIO()}
    with pytest.raises(CommandError, match="needs the event types"):
        call_subcommand("make_token", "ann", **arguments)
    call_subcommand("make_token", "ann", **arguments, event_types=PLAY, event_source="/ci")
    assert ApiToken.objects.get().event_types == [PLAY]


def test_types_and_source_are_changed_in_the_admin_and_nothing_else() -> None:
    ann, boss = of_token(PLAY), person("boss")
    boss.is_staff = True
    boss.save()
    allow(boss, "tailrace_subscriptions.view_apitoken", "tailrace_subscriptions.change_apitoken")
    token = ApiToken.objects.get(name="ci")
    address = f"/admin/tailrace_subscriptions/apitoken/{token.pk}/change/"
    visitor = Visitor(boss)
    page = visitor.get(address).content.decode()
    assert token.token_hash not in page
    for wrong in ({"event_types": "*"}, {"event_types": ""}, {"event_source": "a\nb"}):
        sent = {"event_types": PLAY, "event_source": "/ci", **wrong}
        assert visitor.post(address, sent).status_code == 200, "shown again, with the error"
    sent = {"event_types": "stage.gala", "event_source": "/cd", "scopes": "feeds", "user": boss.pk}
    assert visitor.post(address, sent).status_code == 302
    token.refresh_from_db()
    assert (token.event_types, token.event_source) == (["stage.gala"], "/cd")
    assert (token.scopes, token.user) == (["events:write"], ann.user)
    list_page = "/admin/tailrace_subscriptions/apitoken/"
    chosen = {"action": "revoke", "_selected_action": [token.pk]}
    assert visitor.post(list_page, chosen).status_code == 302
    problem(send(ann, "stage.gala", {}, source="/cd"), 401)

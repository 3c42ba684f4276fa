"""The pages of depositions and records, as a browser without scripts sees them."""

import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError

from tailrace.domains.records.depositions.submit import submit
from tailrace.domains.records.event_types import DepositionSubmitted
from tailrace.domains.records.models import Deposition, Record
from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tests.records.kit import deposit, harvested, metadata, source
from tests.records.test_chain import CHAIN
from tests.web.program import allow
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
FORM = {"title": "Snow", "creators": "Novak, Ana\nKos, Bor", "language": "sl", "access": "open"}


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


def operator(*permissions: str) -> Visitor:
    user = User.objects.create_user("operator", is_staff=True)
    allow(user, *permissions)
    return Visitor(User.objects.get(pk=user.pk))


def test_several_files_are_deposited_together(ana: User, settings: Any) -> None:
    visitor = Visitor(ana)

    def deposit_two() -> Any:
        files = [SimpleUploadedFile(name, name.encode()) for name in ("a.csv", "b.csv")]
        return visitor.post("/records/depositions/new", FORM | {"file": files})

    answer = deposit_two()
    assert answer.status_code == 302, answer.content
    page = visitor.text(answer["Location"])
    assert "a.csv" in page
    assert "b.csv" in page
    settings.RECORDS_MAX_FILES = 1
    refused = deposit_two()
    assert refused.status_code == 422
    assert "at most 1 are allowed" in refused.content.decode()


def test_a_deposition_is_watched_on_its_page_until_it_is_indexed(
    ana: User, run_jobs: Callable[..., int]
) -> None:
    visitor = Visitor(ana)
    file = SimpleUploadedFile("depths.csv", b"day,cm\n")
    answer = visitor.post("/records/depositions/new", {**FORM, "keywords": "a, b", "file": file})
    assert answer.status_code == 302, answer.content
    page = visitor.get(answer["Location"])
    assert 'data-type="records.deposition_submitted"' in page.content.decode()
    assert "every 2s" in page.content.decode(), "it looks again soon while jobs are under way"
    run_jobs()
    done = visitor.get(f"{answer['Location']}/chain").content.decode()
    place = [done.find(f'data-handler="{name}"') for name in CHAIN]
    assert place == sorted(place)
    assert place[0] > 0
    assert done.count('data-key="keyword"') == done.count('data-key="vector"') == 1
    assert "every 30s" in done
    record = Record.objects.get()
    assert record.creators == ["Novak, Ana", "Kos, Bor"]
    assert record.keywords == ["a", "b"]
    assert "Novak, Ana; Kos, Bor" in visitor.text(f"/records/{record.pk}")


def test_a_deposition_without_a_title_is_named_by_its_identifier(ana: User) -> None:
    row = deposit(user=ana, metadata={"title": " "})
    visitor = Visitor(ana)
    page = visitor.get(f"/records/depositions/{row.pk}").content.decode()
    assert re.search(rf"<h1[^>]*>{row.identifier}</h1>", page)
    assert re.findall(r'aria-current="page">(\w+)', page) == ["Depositions"]
    assert row.identifier in visitor.text("/records/depositions")


def test_the_chain_has_no_events_of_others_and_no_jobs_of_other_apps(ana: User) -> None:
    """Such as messages to subscribers, whose routing keys are theirs."""
    bor = User.objects.create_user("bor")
    row = deposit(user=ana)
    first = Event.objects.get(type=DepositionSubmitted.name)
    payload = {"deposition": 10**9, "identifier": "secret", "account": bor.pk}
    publish(NewEvent(DepositionSubmitted, payload, cause_id=first.pk))
    Job.objects.create(handler="subscriptions.deliver", event=first, routing_key="mail:bor")
    address = f"/records/depositions/{row.pk}/chain"
    page = Visitor(ana).get(address).content.decode()
    assert page.count('data-type="records.deposition_submitted"') == 1
    assert 'data-handler="records.validate_deposition"' in page
    assert "mail:bor" not in page
    allowed = (
        operator("tailrace_records.view_deposition", "tailrace_jobs.view_job")
        .get(address)
        .content.decode()
    )
    assert allowed.count('data-type="records.deposition_submitted"') == 2
    assert "mail:bor" in allowed


def test_an_invalid_one_is_corrected_in_a_form_with_its_values(
    ana: User, run_jobs: Callable[..., int]
) -> None:
    row = deposit(user=ana, metadata={"title": "Snow", "creators": [], "language": "sl"})
    run_jobs(*CHAIN)
    visitor = Visitor(ana)
    assert "name at least one creator" in visitor.text(f"/records/depositions/{row.pk}")
    form = visitor.get(f"/records/depositions/new?of={row.pk}").content.decode()
    assert 'value="Snow"' in form
    answer = visitor.post(f"/records/depositions/new?of={row.pk}", FORM)
    assert answer.status_code == 302
    run_jobs(*CHAIN)
    assert Record.objects.get().identifier == row.identifier
    assert visitor.get("/records/depositions/new?of=x").status_code == 404
    assert visitor.post("/records/depositions/new", {**FORM, "title": ""}).status_code == 422


def test_a_curator_decides_and_others_do_not(
    ana: User, run_jobs: Callable[..., int], settings
) -> None:
    settings.RECORDS_AUTO_APPROVE = False
    first, second = deposit("one", ana), deposit("two", ana)
    run_jobs(*CHAIN)
    curator = operator("tailrace_records.curate_deposition", "tailrace_records.view_deposition")
    assert "Waiting for a curator two" in curator.text("/records/depositions")
    path = f"/records/depositions/{first.pk}"
    assert "Approve" in curator.text(path)
    assert "Approve" not in Visitor(ana).text(path)
    assert Visitor(ana).post(f"{path}/approve").status_code == 404
    assert curator.post(f"{path}/reject", {"reason": " "}).status_code == 302
    assert curator.post(f"{path}/reject", {"reason": "no data"}).status_code == 302
    assert curator.post(f"/records/depositions/{second.pk}/approve").status_code == 302
    states = dict(Deposition.objects.values_list("metadata__title", "state"))
    assert states == {"one": "rejected", "two": "approved"}
    assert "no data" in Visitor(ana).text(path)


def test_an_owner_withdraws_a_record(ana: User, run_jobs: Callable[..., int]) -> None:
    deposit("Snow", ana)
    run_jobs(*CHAIN)
    path = f"/records/{Record.objects.get().pk}"
    visitor = Visitor(ana)
    assert visitor.post(f"{path}/withdraw", {"reason": "wrong"}).status_code == 302
    run_jobs(*CHAIN)
    assert "has been withdrawn" in visitor.text(path)
    bob = Visitor(User.objects.create_user("bob"))
    assert bob.post(f"{path}/withdraw", {"reason": "mine"}).status_code == 404


def test_what_a_closed_record_says_is_for_its_owner(
    ana: User, run_jobs: Callable[..., int]
) -> None:
    row = deposit(user=ana, metadata=metadata("Secret", access="closed"))
    run_jobs(*CHAIN)
    bob = Visitor(User.objects.create_user("bob"))
    for path in (f"/records/{Record.objects.get().pk}", f"/records/depositions/{row.pk}"):
        assert bob.get(path).status_code == 404
        assert Visitor(ana).get(path).status_code == 200


@pytest.mark.parametrize("by", ["page", "command"])
def test_the_failed_jobs_of_one_index_are_replayed_alone(
    run_jobs: Callable[..., int], by: str
) -> None:
    submit(harvested(3, source()))
    run_jobs(*CHAIN[:3])
    Job.objects.filter(handler=CHAIN[-1]).update(state="failed")
    visitor = operator("tailrace_jobs.replay_job", "tailrace_jobs.view_job")
    if by == "page":
        assert "0 waiting, 3 failed" in visitor.text("/records/indexes")
        assert visitor.post("/records/indexes/vector/replay").status_code == 302
    else:
        call_subcommand("reindex_records", "vector", by="operator", failed=True, stdout=StringIO())
    states = Job.objects.filter(handler=CHAIN[-1]).order_by("routing_key", "pk")
    expected = [("keyword", "failed")] * 3 + [("vector", "pending")] * 3
    assert list(states.values_list("routing_key", "state")) == expected
    entry = LogEntry.objects.get(change_message__startswith="replayed")
    assert entry.change_message == "replayed 3 jobs: failed jobs of the index vector"


def test_all_records_are_indexed_again_in_one_index(run_jobs: Callable[..., int]) -> None:
    submit(harvested(5, source()))
    run_jobs(*CHAIN)
    record = Record.objects.all()[0]
    record.vector_entries.all().delete()
    record.keyword_entry.delete()
    visitor = operator("tailrace_jobs.replay_job")
    assert visitor.post("/records/indexes/vector/reindex").status_code == 302
    run_jobs()
    record = Record.objects.get(pk=record.pk)
    assert record.vector_entries.exists()
    assert not hasattr(record, "keyword_entry")
    assert LogEntry.objects.filter(change_message__endswith="again: vector").exists()
    assert visitor.post("/records/indexes/nothing/reindex").status_code == 404


def test_the_command_names_what_is_wrong() -> None:
    with pytest.raises(CommandError, match="did you mean 'vector'"):
        call_subcommand("reindex_records", "vectr", by="operator")
    with pytest.raises(CommandError, match="no user 'nobody'"):
        call_subcommand("reindex_records", "vector", by="nobody")


def test_the_overview_has_a_card_of_records() -> None:
    deposit()
    visitor = operator("tailrace_records.view_deposition", "tailrace_jobs.replay_job")
    card = visitor.text("/overview/panels")
    assert "1 submitted, 0 valid, 0 approved" in card
    assert "keyword" in card

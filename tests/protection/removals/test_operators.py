"""The operator's list of removals, and the buttons of parked ones."""

import pytest
from django.contrib.admin.models import LogEntry

from tailrace.domains.protection.services.removals import moves
from tests.protection.removals.kit import now, started
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, allow, problem
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
LIST = "/admin/tailrace_protection/removalrequest/"
VIEW, DECIDE = (
    "tailrace_protection.view_removalrequest",
    "tailrace_protection.decide_removalrequest",
)


def operator(name: str, *permissions: str) -> Visitor:
    user = person(name)
    user.is_staff = True
    user.save()
    allow(user, *permissions)
    return Visitor(user)


def test_who_may_decide_sees_instructions_person_and_buttons(broker, ann) -> None:
    row = started(ann, "letters")
    chief = operator("chief", VIEW, DECIDE)
    assert "needs a person" in chief.text(f"{LIST}?state=needs_person")
    text = chief.text(f"{LIST}{row.pk}/change/")
    for words in ("Send them a letter.", "full_name: Ann Example", "Try again", "by ann: started"):
        assert words in text
    answer = chief.post(f"{LIST}{row.pk}/done/")
    assert f"Removal {row.pk}: done." in chief.text(answer["Location"])
    assert now(row).state == "submitted"
    assert LogEntry.objects.get().change_message == "done"
    answer = chief.post(f"{LIST}{row.pk}/reject/")
    assert "only a parked request can be rejected" in chief.text(answer["Location"])
    assert LogEntry.objects.count() == 1


def test_who_may_only_look_sees_no_person_and_decides_nothing(broker, ann) -> None:
    row = started(ann, "letters")
    clerk = operator("clerk", VIEW)
    text = clerk.text(f"{LIST}{row.pk}/change/")
    assert "Ann Example" not in text
    assert DECIDE in text
    assert "Try again" not in text
    for name in ("done", "reject", "try_again"):
        assert clerk.post(f"{LIST}{row.pk}/{name}/").status_code == 403
    assert "Ann Example" not in clerk.text(LIST)
    assert now(row).state == "needs_person"
    assert operator("guest").get(LIST).status_code == 403


def test_an_operators_program_tries_a_parked_request_again(broker, ann) -> None:
    row = started(ann, "people")
    moves.park(row, "the form has changed")
    path = f"/protection/removals/{row.pk}/try_again"
    assert Program(ann).post(path).status_code == 403
    chief = person("chief")
    allow(chief, DECIDE)
    answer = Program(chief, "protection:write").post(path)
    assert answer.status_code == 200
    assert (answer.json()["state"], answer.json()["note"]) == ("pending", "tried again")
    assert "Ann Example" not in answer.content.decode()
    assert now(row).job_id is not None
    assert LogEntry.objects.get().change_message == "tried again"
    assert "only a parked or rejected" in problem(Program(chief).post(path), 409)["detail"]

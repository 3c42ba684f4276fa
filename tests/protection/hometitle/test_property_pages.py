"""The pages and the API of watched properties."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.models import PropertySnapshot, WatchedProperty
from tailrace.jobs.models import Job
from tests.protection.hometitle.kit import add
from tests.servers.soda import SodaServer
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, problem
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
PATH = "/protection/properties"
ADDRESS = {"borough": "3", "street_number": "12", "street_name": "Main St.", "unit": "apt 4b"}


def test_from_an_address_to_its_history(
    soda: SodaServer, ann: User, scan: Callable[..., Job]
) -> None:
    browser = Visitor(ann)
    assert "You watch no properties yet." in browser.text(PATH)
    browser.post(PATH, ADDRESS)
    text = browser.text(PATH)
    assert "12 Main Street, unit 4B, Brooklyn" in text
    assert "not scanned yet" in text
    soda.deed("2020", ["SMITH, JOHN"], unit="4B")
    scan(ann)
    assert "no changes" in browser.text(PATH)
    soda.deed("2021", ["<b>THIEF</b>"], ["SMITH, JOHN"], unit="4B", recorded="2021-05-01")
    scan(ann)
    assert "1 change" in browser.text(PATH)
    row = WatchedProperty.objects.get()
    page = browser.get(f"{PATH}/{row.pk}").content.decode()
    assert "&lt;b&gt;THIEF&lt;/b&gt;" in page
    text = browser.text(f"{PATH}/{row.pk}")
    assert "A deed names a new owner" in text
    assert "Owner before: SMITH, JOHN" in text
    assert "call the City Register and the police today" in text
    assert "complete up to 2021-05-01" in text
    browser.post(f"{PATH}/{row.pk}/remove")
    assert "You watch no properties yet." in browser.text(PATH)
    assert not PropertySnapshot.objects.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"street_number": "twelve"}, "twelve"),
        ({"street_name": "' OR 1=1"}, "without the number, such as Wall Street"),
        ({"unit": "4B;"}, "send the unit as in 4B"),
        ({"block": "10"}, "either an address, or block and lot"),
        ({"borough": "9"}, "9 is not one of the available choices"),
        ({"street_number": "", "street_name": "", "unit": "", "block": "0", "lot": "1"}, "99999"),
        ({"street_number": "", "street_name": "", "unit": "", "block": "1"}, "It is empty: a lot"),
    ],
)
def test_bad_input_is_named_with_the_way_out(
    ann: User, change: dict[str, str], message: str
) -> None:
    answer = Visitor(ann).post(PATH, ADDRESS | change)
    assert answer.status_code == 422
    assert message in answer.content.decode()
    assert not WatchedProperty.objects.exists()


def test_a_full_account_is_told_its_bound(ann: User, settings) -> None:
    settings.PROTECTION_MAX_PROPERTIES_PER_USER = 1
    add(ann)
    answer = Visitor(ann).post(PATH, ADDRESS)
    assert "You watch 1 properties, the maximum" in answer.content.decode()
    assert problem(
        Program(ann).post("/protection/properties", {"borough": 1, "block": 1, "lot": 1}),
        409,
        "too-many",
    )


def test_a_property_that_is_watched_already_stays_one(ann: User) -> None:
    for street in ("Main St.", "MAIN STREET", "main street"):
        Visitor(ann).post(PATH, ADDRESS | {"street_name": street})
    assert WatchedProperty.objects.count() == 1


def test_a_bounded_property_says_so(ann: User) -> None:
    from tailrace.db.clock import now

    row = add(ann)
    PropertySnapshot.objects.create(property=row, hash="", complete=False, read_at=now())
    text = Visitor(ann).text(f"{PATH}/{row.pk}")
    assert "This address has more than 1000 documents" in text


def test_the_properties_of_others_are_not_there(ann: User) -> None:
    row = add(person("bob"))
    browser = Visitor(ann)
    assert browser.get(f"{PATH}/{row.pk}").status_code == 404
    assert browser.post(f"{PATH}/{row.pk}/remove").status_code == 404
    program = Program(ann)
    for path in ("", "/changes"):
        problem(program.get(f"/protection/properties/{row.pk}{path}"), 404)
    problem(program.delete(f"/protection/properties/{row.pk}"), 404)


def test_the_api_adds_lists_and_removes(
    soda: SodaServer, ann: User, scan: Callable[..., Job]
) -> None:
    program = Program(ann)
    answer = program.post("/protection/properties", {"borough": 3, "block": 10, "lot": 20})
    assert answer.status_code == 201
    id = answer.json()["id"]
    soda.deed("2020", ["SMITH, JOHN"])
    scan(ann)
    soda.deed("2021", ["A BANK"], ["SMITH, JOHN"], type="MTGE", recorded="2021-05-01")
    scan(ann)
    [row] = program.all("/protection/properties")
    assert row["title"] == "Brooklyn, block 10, lot 20"
    assert row["records_until"] == "2021-05-01"
    [change] = program.all(f"/protection/properties/{id}/changes")
    assert (change["kind"], change["severity"]) == ("lien_filing", "critical")
    assert change["details"]["amount"] == "500000"
    faults = problem(
        program.post("/protection/properties", {"borough": 3, "block": 10, "lot": 10_000}),
        422,
        "invalid",
    )
    assert faults["errors"][0]["pointer"] == "#/lot"
    assert "'10000': a lot is a number from 1 to 9999" in faults["detail"]
    assert program.delete(f"/protection/properties/{id}").status_code == 204
    assert program.all("/protection/properties") == []

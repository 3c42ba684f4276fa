"""What the client of ACRIS sends, byte for byte, and what cannot break out of a query."""

from collections.abc import Callable
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from asgiref.sync import async_to_sync

from tailrace.domains.protection.services.properties.documents import Reading
from tailrace.domains.protection.services.properties.places import (
    InvalidPlace,
    Place,
    address_of,
    full_street,
    lot_of,
    street_spellings,
)
from tailrace.domains.protection.services.providers.soda import Acris, quoted
from tailrace.jobs.destinations.request_errors import RequestRefused
from tests.protection.hometitle.kit import ADDRESS, LOT
from tests.servers.soda import LEGALS, SodaServer

pytestmark = pytest.mark.django_db
LEGALS_OF_LOT = (
    "/resource/8h5j-fqxa.json"
    "?$where=borough%3D3%20AND%20block%3D10%20AND%20lot%3D20"
    "&$select=document_id%2Cgood_through_date"
    "&$order=good_through_date%20DESC%2Cdocument_id%20DESC%2C%3Aid&$limit=1000&$offset=0"
)
PARTIES_OF_DOCUMENT = (
    "/resource/636b-3b5g.json"
    "?$where=document_id%20IN%20%28%272020010200001001%27%29"
    "&$select=document_id%2Cparty_type%2Cname&$order=document_id%2C%3Aid&$limit=1000&$offset=0"
)
MASTER_OF_DOCUMENT = (
    "/resource/bnx9-e6tj.json"
    "?$where=document_id%20IN%20%28%272020010200001001%27%29"
    "&$select=document_id%2Cdoc_type%2Cdocument_date%2Cdocument_amt%2Crecorded_datetime"
    "&$order=document_id%2C%3Aid&$limit=1000&$offset=0"
)
HOSTILE = [
    "O'HARA STREET",
    "' OR 1=1 OR street_name='",
    "') OR document_id>'",
    "''",
    "%27 OR 1=1",
    "\\' OR 1=1 --",
    "$limit=50000",
    "&$where=1=1",
    "’ OR ’1’=’1",
]


@async_to_sync
async def read(place: Place, most: int = 1000) -> Reading:
    return await Acris().read(place, most)


def test_the_requests_are_those_of_the_format(soda: SodaServer) -> None:
    soda.deed("2020010200001001", ["SMITH, JOHN"], ["DOE, JANE"])
    read(LOT)
    assert [(request.method, request.path) for request in soda.requests] == [
        ("GET", LEGALS_OF_LOT),
        ("GET", PARTIES_OF_DOCUMENT),
        ("GET", MASTER_OF_DOCUMENT),
    ]
    for request in soda.requests:
        assert request.body == b""
        assert request.headers == {
            "host": soda.url.removeprefix("http://"),
            "user-agent": "Tailrace",
            "accept": "application/json",
            "x-app-token": soda.token,
        }


def test_without_a_token_no_header_is_sent(soda: SodaServer, settings) -> None:
    settings.PROTECTION_SODA_TOKEN = ""
    read(LOT)
    assert "x-app-token" not in soda.requests[0].headers


def test_an_address_is_asked_for_in_all_its_spellings(soda: SodaServer) -> None:
    read(address_of(1, "41-15a", "w 4th st", "Apt. 4b"))
    [where] = parse_qs(urlsplit(soda.requests[0].path).query)["$where"]
    assert where == (
        "borough=1 AND street_number='41-15A' AND street_name IN ('WEST 4 STREET','WEST 4 ST',"
        "'W 4 STREET','W 4 ST','WEST 4TH STREET','WEST 4TH ST','W 4TH STREET','W 4TH ST')"
        " AND unit='4B'"
    )


@pytest.mark.parametrize("street", ["MAIN STREET", "MAIN ST", "Main St."])
def test_an_address_finds_its_deeds_however_it_is_written(soda: SodaServer, street: str) -> None:
    soda.deed("1", ["A"], street="MAIN ST")
    soda.deed("2", ["B"], street="MAIN STREET")
    soda.deed("3", ["C"], street="MAIN AVENUE")
    soda.deed("4", ["D"], number="13")
    assert read(address_of(3, "12", street)).documents.keys() == {"1", "2"}


def test_a_unit_has_its_own_deeds(soda: SodaServer) -> None:
    soda.deed("1", ["A"], unit="4B")
    soda.deed("2", ["B"], unit="5C")
    assert read(address_of(3, "12", "Main St", "#4b")).documents.keys() == {"1"}
    assert read(ADDRESS).documents.keys() == {"1", "2"}


@pytest.mark.parametrize("text", HOSTILE)
def test_no_value_breaks_out_of_its_quotes(soda: SodaServer, text: str) -> None:
    soda.deed("theirs", ["A"], street="OTHER STREET")
    soda.deed("ours", ["B"], street=text)
    place = Place(3, street_number="12", street_name=text)
    assert read(place).documents.keys() == {"ours"}
    place = Place(3, street_number=text, street_name="OTHER STREET", unit=text)
    assert read(place).documents == {}


@pytest.mark.parametrize("text", HOSTILE[1:])
def test_a_person_cannot_enter_such_a_street(text: str) -> None:
    with pytest.raises(InvalidPlace):
        address_of(3, "12", text)


def test_the_server_would_notice_a_value_that_breaks_out(
    soda: SodaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tailrace.domains.protection.services.providers.soda.quoted", lambda text: f"'{text}'"
    )
    soda.deed("theirs", ["A"], street="OTHER STREET")
    place = Place(3, street_number="12", street_name="X') OR street_name IN ('OTHER STREET")
    assert read(place).documents.keys() == {"theirs"}
    with pytest.raises(RequestRefused):
        read(Place(3, street_number="12", street_name="O'HARA"))
    monkeypatch.undo()
    assert quoted("O'HARA") == "'O''HARA'"


def test_an_address_with_10000_deeds_is_bounded_and_says_so(soda: SodaServer) -> None:
    for number in range(10_000):
        day = f"20{number // 1000 + 10}-01-{number % 28 + 1:02d}T00:00:00.000"
        soda.rows[LEGALS].append(
            {
                "document_id": f"{number:016d}", "borough": 3, "block": 10, "lot": number + 1,
                "street_number": "12", "street_name": "MAIN STREET", "good_through_date": day,
            }
        )  # fmt: skip
    reading = read(ADDRESS, 1500)
    assert not reading.complete
    offsets = [unquote(request.path).rpartition("=")[2] for request in soda.requests]
    assert offsets[:2] == ["0", "1000"]
    assert len(soda.requests) == 2 + 2 * 15
    ids = "".join(unquote(request.path) for request in soda.requests[2:])
    assert f"{9999:016d}" in ids, "of the newest year"
    assert f"{5000:016d}" not in ids, "of an older one"


def test_rows_beyond_a_page_are_read(soda: SodaServer) -> None:
    for number in range(2500):
        soda.rows[LEGALS].append(
            {"document_id": "1", "borough": 3, "block": 10, "lot": 20, "unit": str(number)}
        )
    soda.rows[LEGALS].append({"document_id": "0", "borough": 3, "block": 10, "lot": 20})
    read(LOT)
    assert soda.datasets().count(LEGALS) == 3
    assert "%270%27" in soda.requests[-1].path


@pytest.mark.parametrize(
    ("make", "field", "value"),
    [
        (lambda: lot_of(6, 1, 1), "borough", "6"),
        (lambda: lot_of(1, 0, 1), "block", "0"),
        (lambda: lot_of(1, 100_000, 1), "block", "100000"),
        (lambda: lot_of(1, 1, None), "lot", "empty"),
        (lambda: address_of(1, "", "Wall Street"), "street_number", "empty"),
        (lambda: address_of(1, "twelve", "Wall Street"), "street_number", "twelve"),
        (lambda: address_of(1, "12", ""), "street_name", "empty"),
        (lambda: address_of(1, "12", "x" * 81), "street_name", "x"),
        (lambda: address_of(1, "12", "Wall Street", "4B; DROP"), "unit", "DROP"),
    ],
)
def test_a_wrong_place_is_named_with_its_field_and_value(
    make: Callable[[], Place], field: str, value: str
) -> None:
    with pytest.raises(InvalidPlace) as error:
        make()
    assert error.value.field == field
    assert value in str(error.value)


def test_spellings_of_a_street_come_from_one_and_lead_to_it() -> None:
    for street in ("WEST 4 STREET", "MAIN ROAD", "BROADWAY", "EAST 123 STREET", "AVENUE B"):
        for spelling in street_spellings(street):
            assert full_street(spelling) == street

"""What is a change of a property, how bad it is, and what alerts it raises."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.alerts.raising import NOTIFICATIONS
from tailrace.domains.protection.models import Alert, PropertyChange, PropertySnapshot
from tailrace.domains.protection.services.properties import compare
from tailrace.domains.protection.services.properties.names import normalised
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tests.protection.hometitle.kit import add, alerts, changes
from tests.servers.soda import LEGALS, MASTER, PARTIES, SodaServer

pytestmark = pytest.mark.django_db
Scan = Callable[..., Job]


@pytest.fixture
def bought(soda: SodaServer, ann: User, scan: Scan) -> SodaServer:
    """A property that John Smith bought in 2020, scanned once."""
    add(ann)
    soda.deed("2020010200001001", ["SMITH, JOHN"], ["DOE, JANE"])
    scan(ann)
    return soda


def test_the_first_snapshot_raises_nothing(bought: SodaServer) -> None:
    assert changes() == alerts() == []
    [snapshot] = PropertySnapshot.objects.all()
    assert snapshot.documents == {
        "2020010200001001": {
            "type": "DEED",
            "recorded": "2020-01-02T00:00:00.000",
            "dated": "2020-01-02T00:00:00.000",
            "amount": "500000",
            "grantors": ["DOE, JANE"],
            "grantees": ["SMITH, JOHN"],
        }
    }
    assert snapshot.complete
    assert snapshot.watermark == "2020-01-02T00:00:00.000"


def test_a_new_grantee_is_one_critical_transfer(bought: SodaServer, ann: User, scan: Scan) -> None:
    bought.rename_parties("2020010200001001", 2, "THIEF, TOM")
    job = scan(ann)
    assert job.result == {"properties": 1, "changes": 1, "alerts": 1}
    assert changes() == [("ownership_transfer", "critical", "2020010200001001")]
    assert alerts() == [("ownership_transfer", "critical")]
    details = PropertyChange.objects.get().details
    assert details["owners_before"] == ["SMITH, JOHN"]
    assert details["grantees"] == ["THIEF, TOM"]


@pytest.mark.parametrize(
    ("type", "change"),
    [
        ("DEED, LE", ("ownership_transfer", "critical")),
        ("CONDEED", ("ownership_transfer", "critical")),
        ("TODD", ("deed_change", "warning")),
        ("PAT", ("deed_change", "warning")),
        ("SMTG", ("lien_filing", "critical")),
        ("FTL", ("lien_filing", "critical")),
        ("RPTT&RET", ("tax_change", "info")),
        ("SAT", None),
        ("LEAS", None),
    ],
)
def test_what_a_type_of_document_is(
    bought: SodaServer, ann: User, scan: Scan, type: str, change: tuple[str, str] | None
) -> None:
    bought.deed("2026", ["THIEF, TOM"], ["SMITH, JOHN"], type=type, recorded="2026-10-02")
    scan(ann)
    assert changes() == ([] if change is None else [(*change, "2026")])


@pytest.mark.parametrize("name", ["John Smith", "SMITH  JOHN", "Smith,John", "JÓHN SMITH"])
def test_a_name_that_is_written_otherwise_is_no_change(
    bought: SodaServer, ann: User, scan: Scan, name: str
) -> None:
    bought.rename_parties("2020010200001001", 2, name)
    assert scan(ann).result == {"properties": 1, "changes": 0, "alerts": 0}
    assert changes() == alerts() == []


def test_parties_in_another_order_are_no_change(soda: SodaServer, ann: User, scan: Scan) -> None:
    add(ann)
    soda.deed("1", ["SMITH, JOHN", "SMITH, MARY"])
    scan(ann)
    soda.rename_parties("1", 2, "MARY SMITH", "JOHN SMITH")
    scan(ann)
    assert changes() == []


def test_a_deed_to_others_is_a_transfer_and_one_to_the_owners_is_not(
    bought: SodaServer, ann: User, scan: Scan
) -> None:
    bought.deed("2021000000000001", ["Smith John"], ["SMITH, JOHN"], recorded="2021-05-01")
    scan(ann)
    assert changes() == [("deed_change", "warning", "2021000000000001")]
    bought.deed("2022000000000001", ["ACME LLC"], ["SMITH, JOHN"], recorded="2022-05-01")
    scan(ann)
    assert changes()[1:] == [("ownership_transfer", "critical", "2022000000000001")]


def test_sold_and_sold_back_are_two_transfers_and_one_alert(
    bought: SodaServer, ann: User, scan: Scan
) -> None:
    bought.deed("2021000000000001", ["ACME LLC"], ["SMITH, JOHN"], recorded="2021-05-01")
    bought.deed("2021000000000002", ["SMITH, JOHN"], ["ACME LLC"], recorded="2021-05-02")
    scan(ann)
    assert [kind for kind, _, _ in changes()] == ["ownership_transfer"] * 2
    assert alerts() == [("ownership_transfer", "critical")]


def test_an_older_deed_that_comes_late_transfers_nothing(
    bought: SodaServer, ann: User, scan: Scan
) -> None:
    bought.deed("1999000000000001", ["DOE, JANE"], ["ROE, RICHARD"], recorded="1999-05-01")
    scan(ann)
    assert changes() == [("deed_change", "warning", "1999000000000001")]


@pytest.mark.parametrize(
    ("type", "amount", "expected"),
    [
        ("MTGE", 100_000, [("lien_filing", "critical")]),
        ("MTGE", 99_999.99, [("lien_filing", "warning")]),
        ("FL", 0, [("lien_filing", "warning")]),
        ("RPTT&RET", 0, [("tax_change", "info")]),
        ("EASE", 0, [("deed_change", "warning")]),
        ("SAT", 200_000, []),
    ],
)
def test_kinds_and_severities(
    bought: SodaServer, ann: User, scan: Scan,
    type: str, amount: float, expected: list[tuple[str, str]],
) -> None:  # fmt: skip
    bought.deed("2021", ["A BANK"], ["SMITH, JOHN"], type=type, amount=amount)
    scan(ann)
    assert [change[:2] for change in changes()] == expected
    assert alerts() == expected


def test_a_lien_whose_amount_is_corrected_is_one_change_that_got_worse(
    bought: SodaServer, ann: User, scan: Scan, monkeypatch
) -> None:
    monkeypatch.setattr(compare, "LIEN_CRITICAL_AMOUNT", 5000)
    bought.deed("2021", ["A BANK"], ["SMITH, JOHN"], type="MTGE", amount=500)
    scan(ann)
    bought.rows[MASTER][-1]["document_amt"] = 50_000
    scan(ann)
    assert changes() == [("lien_filing", "critical", "2021")]
    assert alerts() == [("lien_filing", "warning"), ("lien_filing", "critical")]


def test_an_alert_pauses_its_kind_for_three_days(
    bought: SodaServer, ann: User, scan: Scan, clock
) -> None:
    for number, hours in enumerate((0, 71, 2)):
        clock.step(hours * 3600)
        bought.deed(f"202{number}", ["A BANK"], [], type="MTGE", amount=10)
        scan(ann)
    assert len(changes()) == 3
    assert alerts() == [("lien_filing", "warning")] * 2


def test_a_scan_that_is_run_again_doubles_nothing(
    bought: SodaServer, ann: User, scan: Scan
) -> None:
    bought.deed("2021", ["THIEF, TOM"], ["SMITH, JOHN"], recorded="2021-05-01")
    for _ in range(3):
        scan(ann)
    assert len(changes()) == len(alerts()) == 1


def test_what_is_published_piece_by_piece_is_one_transfer(
    bought: SodaServer, ann: User, scan: Scan
) -> None:
    """Legals come first, then Master, then Parties."""
    bought.deed("2021", ["THIEF, TOM"], ["SMITH, JOHN"], recorded="2021-05-01")
    later = {name: bought.rows[name][1:] for name in (MASTER, PARTIES)}
    late_parties = [row for row in later[PARTIES] if row["document_id"] == "2021"]
    bought.rows[MASTER].pop()
    bought.rows[PARTIES] = bought.rows[PARTIES][:-2]
    scan(ann)
    assert changes() == []
    bought.rows[MASTER] += later[MASTER]
    scan(ann)
    assert changes() == [("deed_change", "warning", "2021")]
    bought.rows[PARTIES] += late_parties
    scan(ann)
    assert changes()[1:] == [("ownership_transfer", "critical", "2021")]
    assert PropertyChange.objects.get(kind="ownership_transfer").details["owners_before"] == [
        "SMITH, JOHN"
    ]


@pytest.mark.parametrize("dataset", [LEGALS, MASTER, PARTIES])
def test_a_dataset_that_is_empty_for_a_while_changes_nothing(
    bought: SodaServer, ann: User, scan: Scan, dataset: str
) -> None:
    rows, bought.rows[dataset] = bought.rows[dataset], []
    scan(ann)
    bought.rows[dataset] = rows
    scan(ann)
    assert changes() == alerts() == []


def test_names_are_compared_without_order_case_accents_and_marks() -> None:
    assert normalised("SMITH JOHN") == normalised("John Smith")
    assert normalised("O'Neil, Seán Jr.") == normalised("JR SEAN ONEIL")
    assert normalised("A.B.C. L.L.C.") == normalised("ABC LLC")
    assert normalised("SMITH JOHN") != normalised("SMITH JOHN A")
    assert normalised("--") == ""


def test_a_second_lien_within_the_pause_is_announced_at_its_end(
    bought: SodaServer, ann: User, scan: Scan, run_jobs, clock
) -> None:
    documents = []
    for number, hours in enumerate((0, 10, 72)):
        clock.step(hours * 3600)
        if number < 2:
            bought.deed(f"202{number}", ["A BANK"], [], type="MTGE", amount=10)
        scan(ann)
        run_jobs(NOTIFICATIONS)
        events = Event.objects.filter(type="protection.alert_raised").order_by("id")
        documents = [event.payload["details"]["document"] for event in events]
    assert documents == [["2020"], ["2021"]]
    assert alerts() == [("lien_filing", "warning")]
    assert Alert.objects.get().details["document"] == ["2020", "2021"]

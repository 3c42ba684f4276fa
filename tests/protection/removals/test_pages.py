"""The customer's pages of removals."""

import pytest

from tailrace.domains.protection.models import RemovalRequest
from tailrace.domains.protection.services.removals import board, decisions
from tests.protection.removals.kit import ANN, DAY, form_entry, now, started
from tests.subscriptions.sample_domain import person
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
FORM = {"name": "Ann Example", "email": "ann@example.org", "city": "Berlin"}


def test_a_request_from_the_form_to_its_history(broker, ann, run_removals, clock) -> None:
    browser = Visitor(ann)
    answer = browser.post("/protection/removals", {**FORM, "brokers": ["people", "letters"]})
    assert answer["Location"] == "/protection/removals"
    text = browser.text("/protection/removals")
    assert "2 requests started." in text
    assert "Action needed Mailing Lists Send them a letter. Action needed since" in text
    assert "Public Records: by mail (last tested November 2026)" in text, "it can still be chosen"
    assert "People Search: by its web form" not in text
    run_removals()
    clock.step(3 * DAY + 60)
    run_removals()
    row = RemovalRequest.objects.get(broker="people")
    text = browser.text(f"/protection/removals/{row.pk}")
    assert "full_name: Ann Example" in text
    assert "Next check on" in text
    text = text[text.index("History") :]
    order = [text.index(state) for state in ("Removed", "Awaiting", "Submitted", "Pending")]
    assert order == sorted(order)
    browser.post(f"/protection/removals/{row.pk}/withdraw")
    text = browser.text(f"/protection/removals/{row.pk}")
    assert "Ann Example" not in text
    assert "Ended People Search Withdrawn since" in browser.text("/protection/removals")


def test_a_letter_that_was_sent_is_said_to_be_done(broker, ann) -> None:
    row, browser = started(ann, "letters"), Visitor(ann)
    assert "Send them a letter." in browser.text(f"/protection/removals/{row.pk}")
    answer = browser.post(f"/protection/removals/{row.pk}/done")
    assert "Thank you." in browser.text(answer["Location"])
    assert now(row).state == "submitted"
    answer = browser.post(f"/protection/removals/{row.pk}/done")
    assert "The request is submitted: there is nothing to do." in browser.text(answer["Location"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"brokers": []}, "Choose at least one broker."),
        ({"brokers": ["nobody"]}, "nobody is not one of the available choices."),
        ({"name": "A"}, "String should have at least 2 characters."),
        ({"name": "Ann\u2028Example"}, "Has a line break or a control character."),
        ({"email": "ann"}, "Enter a valid email address."),
        ({"city": ""}, "Public Records needs more data: fill in city."),
    ],
)
def test_what_is_wrong_is_beside_its_field(broker, ann, change, message) -> None:
    answer = Visitor(ann).post("/protection/removals", {**FORM, "brokers": ["records"], **change})
    assert answer.status_code == 422
    assert message in words(answer)
    assert not RemovalRequest.objects.exists()


def test_a_second_start_within_a_day_is_refused_in_words(broker, ann) -> None:
    decisions.withdraw(started(ann, "letters"), ann)
    answer = Visitor(ann).post("/protection/removals", {**FORM, "brokers": ["letters"]})
    assert "Your last request at Mailing Lists ended less than a day ago" in words(answer)


def test_requests_of_others_are_not_found(broker, ann) -> None:
    row, other = started(ann, "letters"), Visitor(person("bob"))
    assert other.get(f"/protection/removals/{row.pk}").status_code == 404
    assert other.post(f"/protection/removals/{row.pk}/withdraw").status_code == 404
    assert Visitor(ann).post(f"/protection/removals/{row.pk}/reject").status_code == 404
    assert now(row).state == "needs_person"


def test_a_long_column_goes_on_page_by_page(broker, ann, rewrite, monkeypatch) -> None:
    monkeypatch.setattr(board, "MAX_CARDS", 3)
    keys = [f"broker-{number}" for number in range(25)]
    rewrite(*(form_entry(broker, key, names=[f"Number {key[7:]}"]) for key in keys))
    decisions.start(ann, keys, ANN)
    browser = Visitor(ann)
    text = browser.text("/protection/removals")
    assert "Show all" in text
    assert text.count("Number ") == 3
    page = browser.get("/protection/removals?column=waiting")
    assert words(page).count("Number ") == 20
    older = page.content.decode().split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert browser.text(older).count("Number ") == 5
    assert browser.get("/protection/removals?column=x").status_code == 404


def test_a_file_that_became_invalid_shows_the_board_all_the_same(broker, ann, rewrite) -> None:
    started(ann, "letters")
    rewrite({"key": "broken"})
    text = Visitor(ann).text("/protection/removals")
    assert "Action needed letters This server no longer knows the broker" in text


def test_markup_in_what_others_wrote_is_text(broker, ann, rewrite) -> None:
    rewrite(form_entry(broker, names=["<b>People</b>"], fields={"<i>n</i>": "{name}"}))
    row = started(ann)
    for path in ("/protection/removals", f"/protection/removals/{row.pk}"):
        html = Visitor(ann).get(path).content.decode()
        assert "<b>People" not in html
        assert "<i>n" not in html

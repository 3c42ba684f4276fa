"""The file of brokers: what is wrong with it is named, by entry, key and value."""

import pytest
from django.core.management import CommandError, call_command

from tailrace.domains.protection.services.removals.brokers import (
    InvalidBrokers,
    all_brokers,
    find_broker,
)
from tailrace.domains.protection.services.removals.person import Person
from tests.protection.removals.kit import ANN, form_entry, write_brokers
from tests.servers.broker import DataBroker

BROKER = DataBroker(url="https://people.test")


def problems() -> list[str]:
    with pytest.raises(InvalidBrokers) as error:
        all_brokers()
    return error.value.problems


@pytest.fixture
def file(settings, tmp_path):
    path = tmp_path / "brokers.yaml"
    settings.PROTECTION_BROKERS_FILE = str(path)
    return path


def test_the_samples_are_valid_and_lead_nowhere() -> None:
    brokers = all_brokers()
    assert {broker.method.value for broker in brokers.values()} == {"mail", "form", "manual"}
    assert all(".example/" in broker.url for broker in brokers.values())


def test_without_a_file_there_are_no_brokers(settings) -> None:
    settings.PROTECTION_BROKERS_FILE = ""
    assert not all_brokers()


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"method": "pigeon"}, "people: method: Input should be 'mail', 'form' or 'manual'"),
        ({"removal_uri": "x"}, "people: removal_uri: Extra inputs are not permitted; did you mean"
         " 'removal_url'?"),
        ({"fields": {"x": "{nmae}"}}, "people: fields.x: {nmae} in '{nmae}' is not one of {name},"),
        ({"fields": {"x": "{name.__class__}"}}, "people: fields.x: {name.__class__} in"),
        ({"fields": {}}, "people: fields: Dictionary should have at least 1 item"),
        ({"method": "mail"}, "people: method mail needs mail, the address for requests"),
        ({"accepted_text": ""}, "people: method form needs accepted_text"),
        ({"method": "manual"}, "people: method manual needs instructions"),
        ({"removal_url": "ftp://x"}, "people: removal_url: 'ftp://x' is not a URL"),
        ({"url": "https://{name}.test/"}, "people: url: 'https://{name}.test/': the host must"),
        ({"verification": {"listing_url": "https://x.test/{name}"}}, "people: verification: set"
         " not_listed_status or not_listed_text"),
        ({"verification": {"listing_url": "https://x.test/", "not_listed_txt": "x"}}, "people:"
         " verification.not_listed_txt: Extra inputs are not permitted; did you mean"
         " 'not_listed_text'?"),
        ({"working_as_of": "soon"}, "people: working_as_of: Input should be a valid date"),
        ({"key": "A b"}, "A b: key: String should match pattern"),
        ({"key": 123}, "123: key: Input should be a valid string"),
        ({"per_minute": 0}, "people: per_minute: Input should be greater than 0"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_named(file, more, problem) -> None:
    write_brokers(file, form_entry(BROKER, **more))
    assert problems()[0].startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- {", "brokers.yaml is not valid YAML: "),
        ("key: people", "brokers.yaml is not a list of brokers"),
        ("- people", "entry 1: Input should be a valid dictionary"),
        (
            "- !!python/object/apply:os.getpid []",
            "brokers.yaml is not valid YAML: could not determine",
        ),
    ],
)
def test_a_file_that_is_none_is_named(file, text, problem) -> None:
    file.write_text(text)
    assert problems()[0].startswith(problem)


def test_a_key_is_used_once(file) -> None:
    write_brokers(file, form_entry(BROKER), form_entry(BROKER))
    assert problems() == ["people: two brokers have this key"]


def test_the_start_names_a_file_that_is_not_there(file) -> None:
    with pytest.raises(CommandError, match=r"PROTECTION_BROKERS_FILE: .*brokers.yaml: No such"):
        call_command("check", "--tag", "protection")


def test_fields_get_what_the_broker_needs_and_nothing_else(file) -> None:
    write_brokers(
        file,
        form_entry(BROKER, fields={"n": "{last_name}, {first_name}", "agree": "yes"}),
    )
    broker = find_broker("people")
    assert broker.filled(ANN) == {"n": "Example, Ann", "agree": "yes"}
    odd = Person(name="Zoë {email} O'Neil & Co/../x", email="zoe@example.org")
    assert broker.filled(odd)["n"] == "Co/../x, Zoë"
    url = broker.listing_url(odd)
    assert (
        url
        == "https://people.test/search?name=Zo%C3%AB%20%7Bemail%7D%20O%27Neil%20%26%20Co%2F..%2Fx"
    )


def test_what_a_broker_needs_of_a_person_is_named(file) -> None:
    write_brokers(file, form_entry(BROKER, fields={"place": "{city}, {region}"}))
    assert find_broker("people").missing(ANN) == ["region"]


def test_one_status_needs_no_list(file) -> None:
    verification = {"listing_url": "https://x.test/{name}", "not_listed_status": 404}
    write_brokers(file, form_entry(BROKER, verification=verification))
    [broker] = all_brokers().values()
    assert broker.verification is not None
    assert broker.verification.not_listed_status == [404]
    write_brokers(file, form_entry(BROKER, verification=verification | {"not_listed_status": "x"}))
    assert problems() == ["people: verification.not_listed_status: Input should be a valid list"]

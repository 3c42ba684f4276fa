"""Watched values: one form for each kind, encrypted, once per account, within a bound."""

import base64
import secrets

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction

from tailrace.domains.protection.invariants import ValuesByNewestKeys
from tailrace.domains.protection.models import Exposure, WatchlistItem
from tailrace.domains.protection.services.exposures import moves
from tailrace.domains.protection.services.watchlist import items, values
from tailrace.net.encryption import DecryptionError, decrypt
from tests.kit import at_once
from tests.protection.kit import SSN, fill_protection
from tests.security.remains import rows_with

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann() -> User:
    return User.objects.create_user("ann", "ann@example.test")


@pytest.mark.parametrize(
    ("kind", "text", "value", "masked"),
    [
        ("email", " Ann.B@Example.ORG ", "ann.b@example.org", "a•••@example.org"),
        ("email", "ann@bücher.example", "ann@xn--bcher-kva.example", "a•••@xn--bcher-kva.example"),
        ("phone", "+1 (212) 555-0100", "+12125550100", "+12•••00"),
        ("phone", "0049 170 999 8877", "+491709998877", "+49•••77"),
        ("domain", "Straße.EXAMPLE.", "xn--strae-oqa.example", "xn--strae-oqa.example"),
        ("username", "Ann_B", "ann_b", "a•••b"),
        ("ssn", "219-09-9999", "219099999", "•••-••-9999"),
        ("ssn", "219 09 9999", "219099999", "•••-••-9999"),
    ],
)
def test_a_value_has_one_form(kind, text, value, masked) -> None:
    assert values.normalized(kind, text) == value
    assert values.normalized(kind, value) == value
    assert values.masked(kind, value) == masked


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("email", "ann", "“ann” is not an email address: write it like"),
        ("email", "ann@localhost", "not an email address"),
        ("email", "a@b@c.org", "not an email address"),
        ("phone", "0170 999", "country"),
        ("phone", "+49 170 CALL ME", "country"),
        ("phone", "+1234567890123456", "country"),
        ("domain", "https://example.org/", "write only the domain"),
        ("domain", "localhost", "not a domain"),
        ("domain", "10.0.0.1", "not a domain"),
        ("domain", "ex_ample.org", "not a domain"),
        ("username", "a b", "not a user name"),
        ("ssn", "12345678", "nine digits"),
        ("ssn", "000-12-3456", "none begins with 000"),
        ("ssn", "666-12-3456", "none begins with 000"),
        ("ssn", "912-12-3456", "ITIN"),
        ("ssn", "219-00-3456", "middle part 00"),
        ("ssn", "219-09-0000", "last part 0000"),
        ("email", "", "Enter the value"),
        ("email", "a\x00@example.org", "Enter the value"),
        ("email", "a" * 255, "at most 254"),
        ("iban", "x", "'iban' is not a kind of value: choose one of email, phone"),
    ],
)
def test_what_cannot_be_watched(kind, text, message) -> None:
    with pytest.raises(values.InvalidValue, match=message):
        values.normalized(kind, text)


def test_no_message_repeats_an_ssn() -> None:
    for text in ("666-12-3456", "219-09-99999"):
        with pytest.raises(values.InvalidValue) as error:
            values.normalized("ssn", text)
        assert text not in str(error.value)


def test_a_value_is_encrypted_and_its_hash_is_keyed(ann, settings) -> None:
    item = items.add(ann.pk, "ssn", SSN)
    assert decrypt(item.value) == "219099999"
    assert rows_with("219099999") == rows_with(SSN) == []
    settings.PROTECTION_HASH_KEY = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    assert values.value_key("ssn", "219099999") != item.value_key


def test_a_value_is_watched_once_per_account(ann) -> None:
    bob = User.objects.create_user("bob")
    first = items.add(ann.pk, "email", "ann@example.org")
    assert items.add(ann.pk, "email", "ANN@example.org") == first
    assert items.add(ann.pk, "username", "ann") != first
    assert items.add(bob.pk, "email", "ann@example.org") != first
    assert not items.remove(bob.pk, first.pk)
    assert not items.set_active(bob.pk, first.pk, False)
    assert items.remove(ann.pk, first.pk)
    assert not items.remove(ann.pk, first.pk)


def test_the_bound_of_items_holds_against_many_at_once(ann, settings) -> None:
    settings.PROTECTION_MAX_ITEMS_PER_USER = 3

    def work(number: int) -> bool:
        try:
            return bool(items.add(ann.pk, "username", f"user{number}"))
        except items.TooManyItems:
            return False

    assert sum(at_once(6, work)) == 3
    assert WatchlistItem.objects.count() == 3
    with pytest.raises(items.TooManyItems, match="3 values, the maximum: remove one"):
        items.add(ann.pk, "username", "another")


def test_nothing_is_watched_for_an_account_that_is_gone(ann) -> None:
    id = ann.pk
    ann.delete()
    with pytest.raises(ObjectDoesNotExist):
        items.add(id, "email", "ann@example.org")


def _rewritten() -> int:
    """Let the sweeper look once; return how many values it wrote again."""
    with transaction.atomic():
        invariant = ValuesByNewestKeys()
        return invariant.repair(invariant.find())


def test_new_keys_reach_all_values_and_old_keys_can_go(ann, settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    item = items.add(ann.pk, "ssn", SSN)
    assert _rewritten() == 0

    settings.ENCRYPTION_KEYS = [new, old]
    settings.PROTECTION_HASH_KEY = Fernet.generate_key().decode()
    assert _rewritten() == 1
    settings.ENCRYPTION_KEYS = [new]
    assert _rewritten() == 0
    assert decrypt(WatchlistItem.objects.get().value) == "219099999"
    assert items.add(ann.pk, "ssn", SSN) == item, "it is found by the new hash"
    with pytest.raises(DecryptionError):
        decrypt(item.value)


def test_a_value_that_was_added_again_under_a_new_hash_key_stays_once(ann, settings) -> None:
    item = items.add(ann.pk, "ssn", SSN)
    settings.PROTECTION_HASH_KEY = Fernet.generate_key().decode()
    assert items.add(ann.pk, "ssn", SSN) != item, "it is not known by the new hash yet"
    assert _rewritten() == 1
    assert WatchlistItem.objects.get() == item
    assert _rewritten() == 0


def test_a_value_of_a_lost_key_does_not_keep_the_others_from_new_ones(ann, settings) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    items.add(ann.pk, "ssn", SSN)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    items.add(ann.pk, "username", "ann")
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    assert _rewritten() == 1
    assert WatchlistItem.objects.count() == 2


def test_exposures_are_moved_by_their_user_alone(ann) -> None:
    exposure = fill_protection(ann)
    bob = User.objects.create_user("bob")
    assert moves.move(bob.pk, [exposure.pk], "known") == 0
    assert moves.move(ann.pk, [exposure.pk], "known") == 1
    assert moves.move(ann.pk, [exposure.pk], "known") == 0
    assert Exposure.objects.get().state == "known"
    with pytest.raises(ValueError, match="'gone' is not a state"):
        moves.move(ann.pk, [exposure.pk], "gone")

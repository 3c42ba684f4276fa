"""Recipients' keys, as routing keys carry them."""

import pytest

from tailrace.subscriptions.types.recipient import RecipientKey, address_id


@pytest.mark.parametrize("key", [RecipientKey(user_id=5), RecipientKey(group_id=3)])
def test_a_key_is_read_back_from_its_text(key: RecipientKey) -> None:
    assert RecipientKey.parse(str(key)) == key


def test_an_address_is_part_of_the_text_but_not_of_the_key() -> None:
    routing_key = RecipientKey(user_id=5).with_address("endpoint", 7)
    assert routing_key == "user:5:endpoint:7"
    assert RecipientKey.parse(routing_key) == RecipientKey(user_id=5)
    assert (address_id(routing_key), address_id("user:5")) == (7, 0)


@pytest.mark.parametrize("text", ["", "user", "user:", "user:x", "team:5", "user:-1", "user:5:x"])
def test_other_texts_name_no_recipient(text: str) -> None:
    assert RecipientKey.parse(text) is None

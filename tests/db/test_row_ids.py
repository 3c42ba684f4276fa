"""Only what a row can have is an id."""

import pytest

from tailrace.db.row_ids import row_id


@pytest.mark.parametrize(("text", "id"), [("7", 7), ("007", 7), (str(2**63 - 1), 2**63 - 1)])
def test_what_is_an_id(text: str, id: int) -> None:
    assert row_id(text) == id


@pytest.mark.parametrize("text", ["", "x", "-1", " 1", "1.0", "²", "٣", str(2**63), "9" * 5_000])
def test_what_is_none(text: str) -> None:
    assert row_id(text) is None

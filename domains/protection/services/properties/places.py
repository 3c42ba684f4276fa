"""Lots and addresses: their checks, their normalised form, and the spellings in public records."""

import re
from dataclasses import dataclass

MOST_BLOCK, MOST_LOT = 99_999, 9_999
_NUMBER = re.compile(r"[0-9]{1,6}[A-Z]?(-[0-9]{1,5}[A-Z]?)?( 1/2)?")
_STREET = re.compile(r"[A-Z0-9][A-Z0-9 '&/-]{0,79}")
_UNIT = re.compile(r"[A-Z0-9][A-Z0-9 /-]{0,19}")
_UNIT_WORD = re.compile(r"^(?:APARTMENT|APT|UNIT|SUITE|STE|NO)\b\s*")
_ORDINAL = re.compile(r"\b([0-9]+)(?:ST|ND|RD|TH)\b")
_ENDINGS = {
    "STREET": "ST", "AVENUE": "AVE", "ROAD": "RD", "BOULEVARD": "BLVD", "PLACE": "PL",
    "DRIVE": "DR", "LANE": "LN", "COURT": "CT", "TERRACE": "TER", "PARKWAY": "PKWY",
    "SQUARE": "SQ",
}  # fmt: skip
_DIRECTIONS = {"EAST": "E", "WEST": "W", "NORTH": "N", "SOUTH": "S"}
_FULL_ENDING = {short: full for full, short in _ENDINGS.items()}
_FULL_DIRECTION = {short: full for full, short in _DIRECTIONS.items()}


class InvalidPlace(ValueError):
    """A lot or address that cannot exist. The message says what to send in the field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Place:
    """A lot (block and lot), or an address (street number and street name, perhaps with a unit)."""

    borough: int
    block: int | None = None
    lot: int | None = None
    street_number: str = ""
    street_name: str = ""
    unit: str = ""

    @property
    def place_key(self) -> str:
        """The same key for all spellings of the place, without its unit."""
        if self.block is not None:
            return f"{self.borough}/{self.block}/{self.lot}"
        return f"{self.borough}/{self.street_number}/{self.street_name}"

    @property
    def key(self) -> str:
        return f"{self.place_key}/{self.unit}"


def lot_of(borough: int, block: int | None, lot: int | None) -> Place:
    """Return a lot. Raises InvalidPlace if the numbers are not possible."""
    _check_borough(borough)
    if block is None or not 1 <= block <= MOST_BLOCK:
        raise InvalidPlace("block", f"{_value(block)}: a block is a number from 1 to {MOST_BLOCK}")
    if lot is None or not 1 <= lot <= MOST_LOT:
        raise InvalidPlace("lot", f"{_value(lot)}: a lot is a number from 1 to {MOST_LOT}")
    return Place(borough, block=block, lot=lot)


def address_of(borough: int, number: str, street: str, unit: str = "") -> Place:
    """Return an address in normalised spelling. Raises InvalidPlace."""
    _check_borough(borough)
    plain_number = _plain(number)
    if not _NUMBER.fullmatch(plain_number):
        raise InvalidPlace(
            "street_number", f"{_value(number)}: send the number of the house, such as 12 or 41-15"
        )
    plain_street = full_street(street)
    if not _STREET.fullmatch(plain_street):
        raise InvalidPlace(
            "street_name",
            f"{_value(street)}: send the street's name without the number, such as Wall Street",
        )
    plain_unit = _UNIT_WORD.sub("", _plain(unit).replace("#", "").strip())
    if plain_unit and not _UNIT.fullmatch(plain_unit):
        raise InvalidPlace("unit", f"{_value(unit)}: send the unit as in 4B, or nothing")
    return Place(borough, street_number=plain_number, street_name=plain_street, unit=plain_unit)


def place_of(
    borough: int,
    block: int | None,
    lot: int | None,
    street_number: str,
    street_name: str,
    unit: str,
) -> Place:
    """Return the lot or the address. Raises InvalidPlace, also if parts of both are given."""
    if block is None and lot is None:
        return address_of(borough, street_number, street_name, unit)
    if street_number or street_name or unit:
        raise InvalidPlace(
            "block", "send either an address, or block and lot: empty the fields of the other"
        )
    return lot_of(borough, block, lot)


def full_street(street: str) -> str:
    """Return the normalised spelling of a street: `w 4th st` is `WEST 4 STREET`."""
    words = _ORDINAL.sub(r"\1", _plain(street)).split()
    if len(words) > 1:
        words[-1] = _FULL_ENDING.get(words[-1], words[-1])
    if len(words) > 2:
        words[0] = _FULL_DIRECTION.get(words[0], words[0])
    return " ".join(words)


def street_spellings(street: str) -> list[str]:
    """Return the spellings of a normalised street in public records, the normalised one first."""
    spellings = [street.split()]
    if (ending := _ENDINGS.get(spellings[0][-1])) is not None:
        spellings.append([*spellings[0][:-1], ending])
    if len(spellings[0]) > 2:
        spellings += [
            [_DIRECTIONS[words[0]], *words[1:]] for words in spellings if words[0] in _DIRECTIONS
        ]
    spellings += [
        [_ordinal(word) if word.isdigit() else word for word in words]
        for words in spellings
        if any(word.isdigit() for word in words)
    ]
    return list(dict.fromkeys(" ".join(words) for words in spellings))


def _ordinal(number: str) -> str:
    teens = number[-2:] in ("11", "12", "13")
    return number + ("TH" if teens else {"1": "ST", "2": "ND", "3": "RD"}.get(number[-1], "TH"))


def _plain(text: str) -> str:
    return " ".join(text.translate(str.maketrans(".,’", "  '")).upper().split())


def _check_borough(borough: int) -> None:
    if not 1 <= borough <= 5:
        raise InvalidPlace("borough", f"{_value(borough)}: a borough is a number from 1 to 5")


def _value(value: object) -> str:
    text = str(value if value is not None else "")
    return repr(text[:40]) if text else "It is empty"

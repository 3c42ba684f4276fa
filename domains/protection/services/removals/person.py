"""The person whose data a broker is asked to remove. It is stored encrypted and sent only to that
broker."""

from typing import Annotated

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from tailrace.net.encryption import decrypt, encrypt


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has a line break or a control character")
    return text


def _address(text: str) -> str:
    try:
        validate_email(text)
    except ValidationError:
        raise ValueError("is not a mail address") from None
    return text


Text = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=100), AfterValidator(_one_line)
]
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=2, max_length=100),
    AfterValidator(_one_line),
]
MailAddress = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=254), AfterValidator(_address)
]


class Person(BaseModel):
    """The data by which brokers identify a person."""

    model_config = ConfigDict(extra="forbid")
    name: Name
    """First and last name."""
    email: MailAddress
    city: Text = ""
    region: Text = ""
    """State, county or province."""
    phone: Text = ""

    def values(self) -> dict[str, str]:
        """Return the values for the fields of brokers, by placeholder."""
        first, _, rest = self.name.partition(" ")
        names = {"first_name": first, "last_name": rest.split(" ")[-1]}
        return {**self.model_dump(), **names}

    def encrypted(self) -> str:
        return encrypt(self.model_dump_json())


PLACEHOLDERS = (*Person.model_fields, "first_name", "last_name")


def decrypted(text: str) -> Person:
    """Return the decrypted person. Raises DecryptionError if no key fits."""
    return Person.model_validate_json(decrypt(text))

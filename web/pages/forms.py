"""What the forms of the pages share: their base class, and errors as sentences."""

from typing import Any

from django import forms


class PageForm(forms.BaseForm):
    """A form whose labels end without a colon."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})


def sentence(error: object) -> str:
    """Return the text of an error with a capital letter and a period."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."

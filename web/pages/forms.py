"""Base class of the forms of the pages."""

from typing import Any

from django import forms


class PageForm(forms.BaseForm):
    """A form whose labels end without a colon."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})

"""Base classes of the forms of the pages, and errors as sentences."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest

from tailrace.web.pages import confirmation


class PageForm(forms.BaseForm):
    """A form whose labels end without a colon."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})


class PasswordForm(PageForm, forms.Form):
    password = forms.CharField(
        strip=False, widget=forms.PasswordInput({"autocomplete": "current-password"})
    )

    def __init__(self, user: User, data: object = None) -> None:
        super().__init__(data)
        self.user = user

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        confirmation.check_password(self.user, password)
        return password


class CodeForm(PageForm, forms.Form):
    code = forms.CharField(
        max_length=50,
        widget=forms.TextInput({"autocomplete": "one-time-code", "spellcheck": "false"}),
    )

    def __init__(self, data: object, help_text: str, **attributes: object) -> None:
        super().__init__(data)
        self.fields["code"].help_text = help_text
        self.fields["code"].widget.attrs.update(attributes)


def call_with_message(
    request: HttpRequest, done: str, error: type[Exception], action: Callable[[], object]
) -> None:
    """Call the action, and show `done` on the next page, or the error if it is raised."""
    try:
        action()
    except error as problem:
        messages.error(request, sentence(problem))
    else:
        messages.success(request, done)


def sentence(error: object) -> str:
    """Return the text of an error with a capital letter and a period."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."

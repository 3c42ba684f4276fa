"""parts: forms of the pages."""

from typing import Any

from django import forms
from django.contrib.auth.models import User

from subscriptions import tokens


class Plain(forms.BaseForm):
    """A form whose labels have no colon."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})


class BlockForm(Plain, forms.Form):
    """Whom to hear nothing of; `found` is the user of that login."""

    username = forms.CharField(
        label="Login",
        max_length=150,
        widget=forms.TextInput({"autocomplete": "off", "autocapitalize": "none"}),
    )

    def __init__(self, user: User, *args: Any) -> None:
        super().__init__(*args)
        self.user = user

    def clean_username(self) -> str:
        name = str(self.cleaned_data["username"])
        self.found = User.objects.filter(username=name).first()
        if self.found is None:
            raise forms.ValidationError(f"Nobody has the login {name!r}.")
        if self.found == self.user:
            raise forms.ValidationError("You cannot block yourself.")
        return name


class TokenForm(Plain, forms.Form):
    """What a program may do, and for how long."""

    name = forms.CharField(max_length=100, help_text="What you know it again by.")
    scopes = forms.MultipleChoiceField(
        label="What it may do",
        choices=lambda: [(scope, f"{scope}: {words}") for scope, words in tokens.SCOPES.items()],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one thing that it may do."},
    )
    days = forms.TypedChoiceField(
        label="Ends after",
        choices=[("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("", "never")],
        coerce=float,
        empty_value=None,
        required=False,
        initial="90",
    )

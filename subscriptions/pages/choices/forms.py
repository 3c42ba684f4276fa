"""The forms of the preferences page."""

from typing import Any

from django import forms
from django.contrib.auth.models import User

from tailrace.subscriptions.models import Preferences
from tailrace.web.accounts import tokens
from tailrace.web.pages.forms import PageForm

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class PreferencesForm(PageForm, forms.ModelForm):
    digest_weekday = forms.TypedChoiceField(
        label="Day of weekly digests", choices=list(enumerate(WEEKDAYS)), coerce=int
    )

    class Meta:
        model = Preferences
        fields = ("time_zone", "digest_at", "digest_weekday", "phone")
        labels = {"digest_at": "Time of daily and weekly digests"}
        help_texts = {
            "time_zone": "For example Europe/Berlin. These pages show times in this zone.",
            "digest_at": "In your time zone.",
            "phone": "For text messages, with country code: +4930123456.",
        }
        widgets = {
            "time_zone": forms.TextInput({"list": "zones", "autocomplete": "off"}),
            "digest_at": forms.TimeInput({"type": "time"}, format="%H:%M"),
            "phone": forms.TextInput({"type": "tel", "autocomplete": "tel"}),
        }


class BlockForm(PageForm, forms.Form):
    """The login of the user to block; a valid form has the user as `blocked`."""

    username = forms.CharField(
        label="User name",
        max_length=150,
        widget=forms.TextInput({"autocomplete": "off", "autocapitalize": "none"}),
    )

    def __init__(self, user: User, *args: Any) -> None:
        super().__init__(*args)
        self.user = user

    def clean_username(self) -> str:
        name = str(self.cleaned_data["username"])
        self.blocked = User.objects.filter(username=name).first()
        if self.blocked is None:
            raise forms.ValidationError(f"There is no user called {name!r}.")
        if self.blocked == self.user:
            raise forms.ValidationError("You cannot block yourself.")
        return name


class TokenForm(PageForm, forms.Form):
    """Name, scopes and lifetime of a new API token."""

    name = forms.CharField(max_length=100, help_text="Shown in the list of your tokens.")
    scopes = forms.MultipleChoiceField(
        choices=lambda: [(scope, f"{scope}: {text}") for scope, text in tokens.scopes().items()],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one scope."},
    )
    event_types = forms.CharField(
        label="Event types",
        required=False,
        max_length=2000,
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
        help_text=f"With {tokens.RECORDS_EVENTS}: the event types and families that the token may"
        " record, separated by commas, such as builds.build.",
    )
    event_source = forms.CharField(
        label="Source of events",
        required=False,
        max_length=tokens.MAX_SOURCE_LENGTH,
        help_text=f"With {tokens.RECORDS_EVENTS}: the source of the token's events, such as /ci.",
    )
    days = forms.TypedChoiceField(
        label="Lifetime",
        choices=[("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "unlimited")],
        coerce=float,
        empty_value=None,
        required=False,
        initial="90",
    )

"""My preferences: when and where one is reached; whom one blocks; browsers; tokens of programs.

This module has the page and its first form; each other part has a module of its own, which gives
the page back with its form when that is wrong.
"""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from subscriptions import tokens, vapid
from subscriptions.models import Block, Device, Preferences
from subscriptions.pages.parts import BlockForm, Plain, TokenForm
from subscriptions.pages.person import PersonRequest, for_person, show

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SHOWN = 500


class PreferencesForm(Plain, forms.ModelForm):
    digest_weekday = forms.TypedChoiceField(
        label="Weekly digests come on", choices=list(enumerate(WEEKDAYS)), coerce=int
    )

    class Meta:
        model = Preferences
        fields = ("time_zone", "digest_at", "digest_weekday", "phone")
        labels = {"digest_at": "Daily and weekly digests come at"}
        help_texts = {
            "time_zone": "Such as Europe/Berlin. Times on these pages are shown in it too.",
            "digest_at": "On the clock of your time zone.",
            "phone": "For texts, with the country: +4930123456.",
        }
        widgets = {
            "time_zone": forms.TextInput({"list": "zones", "autocomplete": "off"}),
            "digest_at": forms.TimeInput({"type": "time"}, format="%H:%M"),
            "phone": forms.TextInput({"type": "tel", "autocomplete": "tel"}),
        }


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def my_preferences(request: PersonRequest) -> HttpResponse:
    """GET: the page. POST: keep the preferences."""
    if request.method != "POST":
        return page(request)
    with transaction.atomic():
        row, _made = Preferences.objects.select_for_update().get_or_create(user=request.user)
        form = PreferencesForm(request.POST, instance=row)
        if form.is_valid():
            form.save()
            messages.success(request, "Saved.")
            return redirect("my_preferences")
    return page(request, preferences=form)


def page(request: PersonRequest, **said: Any) -> HttpResponse:
    """Show the page; `said` has a form that was wrong, or what is shown once."""
    user = request.user
    row = Preferences.objects.filter(user=user).first() or Preferences(user=user)
    context = {
        "preferences": PreferencesForm(instance=row),
        "zones": sorted(available_timezones()),
        "blocking": BlockForm(user),
        "blocks": Block.objects.filter(user=user).select_related("blocked").order_by("pk")[:SHOWN],
        "devices": Device.objects.filter(user=user).order_by("-pk")[:SHOWN],
        "key": vapid.public_key(),
        "token": TokenForm(),
        "tokens": tokens.live(user),
        **said,
    }
    wrong = any(isinstance(one, forms.BaseForm) and one.errors for one in said.values())
    return show(request, "preferences.html", context, status=422 if wrong else 200)

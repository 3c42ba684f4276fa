"""The preferences page: time zone and digests, blocked users, browsers and API tokens."""

from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from tailrace.environment.types import split
from tailrace.subscriptions.channels.push import vapid
from tailrace.subscriptions.channels.sms import confirmation
from tailrace.subscriptions.models import Block, Device, Preferences
from tailrace.subscriptions.pages.choices.forms import BlockForm, PreferencesForm, TokenForm
from tailrace.web.accounts import budget, tokens
from tailrace.web.accounts.time_zones import time_zone_names
from tailrace.web.models import ApiToken
from tailrace.web.pages.confirmation import confirmed
from tailrace.web.pages.forms import call_with_message
from tailrace.web.pages.frame import PersonRequest, person_page, show

MAX_SHOWN = 500
CODE_COST = 5
"""A code counts as this number of requests towards the rate limit."""


@person_page("GET", "HEAD", "POST")
def my_preferences(request: PersonRequest) -> HttpResponse:
    """GET: show the page. POST: save the preferences."""
    if request.method != "POST":
        return _show(request)
    with transaction.atomic():
        rows = Preferences.objects.select_for_update()
        row, _created = rows.get_or_create(user=request.user)
        form = PreferencesForm(request.POST, instance=row)
        if form.is_valid():
            form.save()
            messages.success(request, "Saved.")
            return redirect("my_preferences")
    return _show(request, preferences_form=form)


@person_page("POST")
def send_code(request: PersonRequest) -> HttpResponse:
    """Send a code to the user's phone."""
    budget.spend(request.user.pk, cost=CODE_COST)
    done = "A code is being sent to your phone."
    send = partial(confirmation.send_code, request.user)
    call_with_message(request, done, confirmation.PhoneError, send)
    return redirect("my_preferences")


@person_page("POST")
def confirm_phone(request: PersonRequest) -> HttpResponse:
    """Confirm the user's number with the code."""
    budget.spend(request.user.pk, cost=CODE_COST)
    code, done = request.POST.get("code", ""), "Your phone number is confirmed."
    confirm = partial(confirmation.confirm, request.user, code)
    call_with_message(request, done, confirmation.PhoneError, confirm)
    return redirect("my_preferences")


@person_page("POST")
def block(request: PersonRequest) -> HttpResponse:
    """Block the user whose login is in the form. Safe to repeat."""
    form = BlockForm(request.user, request.POST)
    if not form.is_valid():
        return _show(request, block_form=form)
    Block.objects.get_or_create(user=request.user, blocked=form.blocked)
    messages.success(request, f"You won't be notified about anything {form.blocked} does.")
    return redirect("my_preferences")


@person_page("POST")
def unblock(request: PersonRequest, id: int) -> HttpResponse:
    block = get_object_or_404(Block, pk=id, user=request.user)
    block.delete()
    messages.success(request, f"{block.blocked} is no longer blocked.")
    return redirect("my_preferences")


@person_page("POST")
@confirmed
def make_token(request: PersonRequest) -> HttpResponse:
    """Create a token, and show it once."""
    form = TokenForm(request.POST)
    if form.is_valid():
        values = form.cleaned_data | {"event_types": split(form.cleaned_data["event_types"])}
        try:
            with transaction.atomic():
                token, text = tokens.make(request.user, granted=values.pop("scopes"), **values)
                tokens.record_made(token)
        except tokens.WrongToken as error:
            form.add_error(None, str(error))
        else:
            return _show(request, new_token=token, text=text)
    return _show(request, token_form=form)


@person_page("POST")
def revoke_token(request: PersonRequest, id: int) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=id, user=request.user)
    tokens.revoke(token)
    messages.success(request, f"The token “{token.name}” is revoked.")
    return redirect("my_preferences")


def _show(request: PersonRequest, **context: Any) -> HttpResponse:
    """Show the page. `context` has a form with errors, or a new token and its text."""
    user = request.user
    row = Preferences.objects.filter(user=user).first() or Preferences(user=user)
    blocks = Block.objects.filter(user=user).select_related("blocked").order_by("pk")
    invalid = any(isinstance(form, forms.BaseForm) and form.errors for form in context.values())
    context = {
        "preferences_form": PreferencesForm(instance=row),
        "phone_to_confirm": row.phone if settings.SMS_URL and not row.phone_confirmed else "",
        "zones": sorted(time_zone_names()),
        "block_form": BlockForm(user),
        "blocks": blocks[:MAX_SHOWN],
        "devices": Device.objects.filter(user=user).order_by("-pk")[:MAX_SHOWN],
        "key": vapid.public_key(),
        "token_form": TokenForm(),
        "tokens": tokens.active(user),
        **context,
    }
    return show(
        request, "tailrace/subscriptions/pages/preferences.html", context, 422 if invalid else 200
    )

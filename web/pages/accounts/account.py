"""The account pages: password, second factor, sessions and security log."""

from typing import Any

import segno
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from tailrace.events.catalog.topics import type_title
from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.web.accounts.access_keys import all_access_keys
from tailrace.web.accounts.security import second_factor
from tailrace.web.accounts.security.log import record
from tailrace.web.event_types import SecurityEvent, SignedOutEverywhere
from tailrace.web.pages import confirmation
from tailrace.web.pages.forms import CodeForm, PasswordForm
from tailrace.web.pages.frame import PersonRequest, for_person, show

MAX_SHOWN = 30


@require_GET
@for_person
def account(request: PersonRequest) -> HttpResponse:
    """Show the password, second factor, sessions and the newest entries of the security log."""
    factor = second_factor.of(request.user)
    context = {
        "factor": factor,
        "codes_left": len(factor.recovery_codes) if factor else 0,
        "required": _is_required(request),
        "entries": _entries(request),
    }
    return show(request, "tailrace/web/accounts/account.html", context)


def _entries(request: PersonRequest) -> list[dict[str, object]]:
    rows = Event.objects.filter(subject=f"account/{request.user.pk}").order_by("-id")
    events = [Recorded.from_model(row) for row in rows[:MAX_SHOWN]]
    return [
        {"title": type_title(event.event_type), "event": event, "details": _details(event)}
        for event in events
        if event.event_type and issubclass(event.event_type, SecurityEvent)
    ]


def _details(event: Recorded) -> str:
    parts = []
    for key, value in event.raw_payload.items():
        if key in ("user", "user_id", "address") or value in ("", None, [], "none"):
            continue
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        parts.append(f"{key.replace('_', ' ')}: {text}")
    return "; ".join(parts)


class SignOutForm(PasswordForm):
    """Asks for the password and for the kinds of keys to revoke as well."""

    field_order = ("keys", "password")
    keys = forms.MultipleChoiceField(
        label="Revoke as well", required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, user: User, data: object = None) -> None:
        super().__init__(user, data)
        keys: Any = self.fields["keys"]
        keys.choices = [(kind.name, kind.title) for kind in all_access_keys()]


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
@for_person
def sign_out_everywhere(request: PersonRequest) -> HttpResponse:
    """GET: show the form. POST: end all other sessions and revoke the chosen kinds of keys."""
    form = SignOutForm(request.user, request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return show(request, "tailrace/web/accounts/sign_out_everywhere.html", {"form": form})
    chosen = [kind for kind in all_access_keys() if kind.name in form.cleaned_data["keys"]]
    user = request.user
    # Each session contains a hash of the stored password hash. Hashing the same password with
    # another salt ends all sessions.
    encoded = make_password(form.cleaned_data["password"])
    with transaction.atomic():
        user.password = encoded
        user.save(update_fields=["password"])
        for kind in chosen:
            kind.revoke_all(user)
        record(SignedOutEverywhere, user, revoked=[kind.title for kind in chosen])
    update_session_auth_hash(request, user)
    revoked = f" Revoked: {', '.join(kind.title for kind in chosen)}." if chosen else ""
    messages.success(request, f"All other sessions have ended.{revoked}")
    return redirect("account")


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("code")
@for_person
@confirmation.confirmed
def set_up(request: PersonRequest) -> HttpResponse:
    """GET: show the key for an authenticator app. POST: confirm the key with a code and show the
    recovery codes."""
    if second_factor.of(request.user):
        return redirect("account")
    if request.method != "POST" and not confirmation.is_confirmed(request):
        return confirmation.ask(request)
    factor = second_factor.begin(request.user)
    form = CodeForm(
        request.POST if "code" in request.POST else None,
        "Enter the six digits that the app shows.",
        inputmode="numeric",
    )
    if form.is_valid():
        codes = second_factor.set_up(factor, form.cleaned_data["code"])
        if codes is not None:
            second_factor.mark_session(request)
            return _show_codes(request, codes)
        form.add_error("code", "This code is wrong. Check the clock of your device.")
    uri = second_factor.provisioning_uri(factor)
    context = {
        "form": form,
        "picture": segno.make(uri, micro=False).svg_data_uri(scale=5, dark="#000", light="#fff"),
        "key": second_factor.key_of(factor),
        "required": _is_required(request),
    }
    return show(request, "tailrace/web/accounts/second_factor_setup.html", context)


@require_POST
@for_person
@confirmation.confirmed
def new_codes(request: PersonRequest) -> HttpResponse:
    factor = second_factor.of(request.user)
    if factor is None:
        return redirect("second_factor_setup")
    return _show_codes(request, second_factor.new_recovery_codes(factor))


@require_POST
@for_person
@confirmation.confirmed
def remove(request: PersonRequest) -> HttpResponse:
    """Remove the second factor. If it is required, the user has to set up a new one next."""
    if factor := second_factor.of(request.user):
        second_factor.remove(factor)
        messages.success(request, "Your second factor was removed.")
    return redirect("account")


def _show_codes(request: PersonRequest, codes: list[str]) -> HttpResponse:
    return show(request, "tailrace/web/accounts/recovery_codes.html", {"codes": codes})


def _is_required(request: PersonRequest) -> bool:
    return bool(settings.REQUIRE_SECOND_FACTOR and request.user.is_staff)

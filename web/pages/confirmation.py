"""Ask for the password again before tokens and secrets are created: the session may be stolen."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.debug import sensitive_post_parameters

from tailrace.db.query import database_now
from tailrace.web.accounts.security.log import record_some
from tailrace.web.accounts.security.login_throttle import CONFIRMATION, TooManyAttempts, attempt
from tailrace.web.accounts.security.password_hasher import TooManyAtOnce
from tailrace.web.event_types import LoginFailed
from tailrace.web.pages.menu import page_links

VALID_SECONDS = 600
FIELD = "confirm_password"
_STAMP = "confirmed_at"

View = Callable[..., HttpResponseBase]


def confirm(request: HttpRequest) -> None:
    """Remember in the session that the user has just proved their identity."""
    request.session[_STAMP] = database_now().timestamp()


def is_confirmed(request: HttpRequest) -> bool:
    """Return whether the user proved their identity in this session in the last ten minutes."""
    age = database_now().timestamp() - request.session.get(_STAMP, 0)
    return 0 <= age < VALID_SECONDS


def check_password(user: User, password: str) -> None:
    """Raise ValidationError if the password is wrong, or after too many wrong passwords."""
    try:
        counted_attempt = attempt([(CONFIRMATION, str(user.pk))], own=1)
    except TooManyAttempts as error:
        raise forms.ValidationError(str(error)) from None
    try:
        is_right = user.check_password(password)
    except TooManyAtOnce:
        counted_attempt.undo()
        raise
    if not is_right:
        key = f"login_failed:{user.pk}"
        failures = counted_attempt.failures
        record_some(key, LoginFailed, user, failures=failures, step="confirmation")
        raise forms.ValidationError("This is not your password.")
    counted_attempt.succeeded()


def confirmed(view: View) -> View:
    """Decorate a view: a POST asks for the password unless the user confirmed it recently. The
    password form keeps the posted fields."""

    @sensitive_post_parameters(FIELD)
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method != "POST" or is_confirmed(request):
            return view(request, *args, **kwargs)
        form = ConfirmationForm(request.user, request.POST if FIELD in request.POST else None)
        if not form.is_valid():
            return ask(request, form)
        confirm(request)
        return view(request, *args, **kwargs)

    return wrapped


class ConfirmationForm(forms.Form):
    confirm_password = forms.CharField(
        label="Password",
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "current-password", "autofocus": True}),
    )

    def __init__(self, user: Any, data: Any = None) -> None:
        super().__init__(data, label_suffix="")
        self.user = user

    def clean_confirm_password(self) -> str:
        password: str = self.cleaned_data["confirm_password"]
        check_password(self.user, password)
        return password


def ask(request: HttpRequest, form: "ConfirmationForm | None" = None) -> HttpResponse:
    """Return the page that asks for the password; its form contains the posted fields."""
    form = form or ConfirmationForm(request.user)
    posted_fields = [
        (name, value)
        for name, values in request.POST.lists()
        if name not in (FIELD, "csrfmiddlewaretoken")
        for value in values
    ]
    context = {"form": form, "kept": posted_fields, "links": page_links(request)}
    return render(
        request, "tailrace/web/accounts/confirm.html", context, status=422 if form.is_bound else 403
    )

"""Change the password, or reset it with a link by mail."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, PasswordResetForm, SetPasswordForm
from django.contrib.auth.views import PasswordResetConfirmView
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from tailrace.jobs.enqueue import enqueue
from tailrace.web.accounts.security import login_throttle
from tailrace.web.accounts.security.log import record_some
from tailrace.web.accounts.security.login_throttle import MAIL, MAIL_ADDRESS, TooManyAttempts
from tailrace.web.accounts.security.request import client_address, network
from tailrace.web.event_types import ResetRequested
from tailrace.web.handlers import PasswordResetMail, reset_tokens
from tailrace.web.pages import confirmation
from tailrace.web.pages.forms import PageForm
from tailrace.web.pages.frame import PersonRequest, for_person, show, show_form


class ChangeForm(PageForm, PasswordChangeForm):
    def clean_old_password(self) -> str:
        password: str = self.cleaned_data["old_password"]
        confirmation.check_password(self.user, password)
        return password


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
@for_person
def change_password(request: PersonRequest) -> HttpResponse:
    """GET: show the form. POST: change the password; the user's other sessions end."""
    form = ChangeForm(request.user, request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return show(request, "tailrace/web/accounts/password_change.html", {"form": form})
    with transaction.atomic():
        form.save()
    update_session_auth_hash(request, request.user)
    messages.success(request, "Your password was changed. Your other sessions have ended.")
    return redirect("account")


class ResetForm(PageForm, PasswordResetForm):
    pass


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def reset_password(request: HttpRequest) -> HttpResponse:
    """GET: show the form. POST: mail a link to the user with the entered mail address.

    Response and work are the same if no user has the address, so they do not reveal accounts.
    """
    form = ResetForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return show_form(request, "tailrace/web/accounts/password_reset.html", form)
    email = form.cleaned_data["email"]
    address = network(client_address(request))
    try:
        login_throttle.attempt([(MAIL, email.casefold()), (MAIL_ADDRESS, address)])
    except TooManyAttempts as error:
        form.add_error(None, str(error))
        return show_form(request, "tailrace/web/accounts/password_reset.html", form, error.wait)
    # At most one user, so that the number of jobs does not reveal how many accounts there are.
    user = next(iter(form.get_users(email)), None)
    with transaction.atomic():
        enqueue(PasswordResetMail, {"user": user.pk if user else None})
        key = f"reset_requested:{user.pk if user else 'unknown'}"
        record_some(key, ResetRequested, user)
    return render(request, "tailrace/web/accounts/password_reset_done.html")


class NewPasswordForm(PageForm, SetPasswordForm):
    pass


class ChooseNewPassword(PasswordResetConfirmView):
    """Choose a new password with the mailed link, which is valid once and for an hour."""

    template_name = "tailrace/web/accounts/password_reset_confirm.html"
    form_class = NewPasswordForm
    token_generator = reset_tokens
    success_url = reverse_lazy("login")

    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
        messages.success(self.request, "Your password was changed. Sign in with the new password.")
        return response

"""Sign in, with a second factor if the user has one, and sign out. Staff use the same pages."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate, login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from tailrace.db.query import database_now
from tailrace.web.accounts.security import login_throttle, second_factor
from tailrace.web.accounts.security.log import record, record_some
from tailrace.web.accounts.security.login_throttle import Attempt, TooManyAttempts
from tailrace.web.accounts.security.password_hasher import TooManyAtOnce
from tailrace.web.event_types import Login, LoginFailed
from tailrace.web.models import SecondFactor
from tailrace.web.pages import confirmation
from tailrace.web.pages.forms import CodeForm, PageForm
from tailrace.web.pages.frame import show_form
from tailrace.web.pages.menu import all_page_links

PENDING = "second_factor_pending"
PENDING_SECONDS = 600


class SignInForm(PageForm, AuthenticationForm):
    """Checks the password, unless there were too many attempts."""

    wait = 0
    """After too many attempts, the seconds to wait."""

    def clean(self) -> dict[str, Any]:
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not name or not password or self.request is None:
            return self.cleaned_data
        try:
            attempt = login_throttle.attempt_login(self.request, name)
        except TooManyAttempts as error:
            self.wait = error.wait
            raise forms.ValidationError(str(error), code="too_many_attempts") from None
        try:
            self.user_cache = authenticate(self.request, username=name, password=password)
        except TooManyAtOnce:
            attempt.undo()
            raise
        if self.user_cache is None:
            record_failure(attempt, name, "password")
            raise self.get_invalid_login_error()
        attempt.succeeded()
        return self.cleaned_data


def record_failure(attempt: Attempt, name: str, step: str) -> None:
    """Record the first failed attempt in a row, the second, the fourth, the eighth …

    A login that no user has is not written to the log. The statements are the same for all logins.
    """
    if attempt.failures & (attempt.failures - 1):
        return
    user = User.objects.filter(username=name).first()
    key = f"login_failed:{user.pk if user else 'unknown'}"
    record_some(key, LoginFailed, user, failures=attempt.failures, step=step)


class SignIn(LoginView):
    """Sign in with login and password, then redirect to `next`, the overview (staff) or the user's
    first page."""

    template_name = "tailrace/web/accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_default_redirect_url(self) -> str:
        return start_of(self.request.user)

    def form_invalid(self, form: Any) -> HttpResponse:
        response: HttpResponse = super().form_invalid(form)
        if form.wait:
            response.status_code = 429
            response["Retry-After"] = str(form.wait)
        return response

    def form_valid(self, form: Any) -> HttpResponse:
        user: User = form.get_user()
        if second_factor.of(user):
            return ask_for_code(self.request, user, self.get_redirect_url())
        return signed_in(self.request, user, self.get_redirect_url(), factor="none")


def ask_for_code(request: HttpRequest, user: User, next: str) -> HttpResponse:
    """Store the user with the right password in the session, and ask for the second factor."""
    request.session.cycle_key()
    request.session[PENDING] = {
        "user": user.pk,
        "hash": user.get_session_auth_hash(),
        "at": database_now().timestamp(),
        "next": next,
    }
    return redirect("second_factor")


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("code")
@never_cache
def second_factor_page(request: HttpRequest) -> HttpResponse:
    """Ask for a code: after the password, or in a session without a proved second factor."""
    if isinstance(request.user, User):
        user, next = request.user, ""
    elif (pending := _pending(request)) is not None:
        user, next = pending
    else:
        return redirect("login")
    factor = second_factor.of(user)
    if factor is None or second_factor.session_has_it(request):
        return redirect("second_factor_setup" if request.user.is_authenticated else "login")
    form = CodeForm(
        request.POST if request.method == "POST" else None,
        "Enter six digits from your authenticator app, or a recovery code.",
        autofocus=True,
    )
    template, code_kind = "tailrace/web/accounts/second_factor.html", ""
    if form.is_valid():
        try:
            code_kind = _verify(factor, form.cleaned_data["code"])
        except TooManyAttempts as error:
            form.add_error(None, str(error))
            return show_form(request, template, form, error.wait)
        if not code_kind:
            form.add_error("code", "This code is wrong, too old, or was already used.")
    if not code_kind:
        return show_form(request, template, form)
    response = signed_in(request, user, next, factor=code_kind)
    second_factor.mark_session(request)
    return response


def _pending(request: HttpRequest) -> tuple[User, str] | None:
    """Return the user who entered the right password in the last minutes, and the URL to go to."""
    pending = request.session.get(PENDING) or {}
    if database_now().timestamp() - pending.get("at", 0) > PENDING_SECONDS:
        return None
    user = User.objects.filter(pk=pending.get("user", 0), is_active=True).first()
    if user is None or user.get_session_auth_hash() != pending.get("hash"):
        return None
    return user, pending["next"]


def _verify(factor: SecondFactor, code: str) -> str:
    """Return the kind of the code, "" if it is wrong. Raises TooManyAttempts after wrong codes."""
    attempt = login_throttle.attempt([(login_throttle.CODE, str(factor.pk))], own=1)
    code_kind = second_factor.verify(factor, code)
    if code_kind:
        attempt.succeeded()
    else:
        record_failure(attempt, factor.user.get_username(), "code")
    return code_kind


def signed_in(request: HttpRequest, user: User, next: str, factor: str) -> HttpResponse:
    """Begin the session of a fully authenticated user; redirect to `next`, or the first page."""
    with transaction.atomic():
        login(request, user)
        record(Login, user, second_factor=factor)
    confirmation.confirm(request)
    response = redirect(next or start_of(user))
    login_throttle.remember_browser(request, response, user)
    return response


def start_of(user: Any) -> str:
    """Return the URL of the user's first page: the overview for staff, else `/me/`."""
    return reverse("tailrace:overview" if user.is_staff else "me")


class SignOut(LogoutView):
    next_page = "login"


def sign_in_to_admin(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    """Redirect to the sign-in page; raise PermissionDenied if a signed-in user is not staff."""
    if request.user.is_authenticated and not request.user.is_staff:
        raise PermissionDenied("only staff may use the admin")
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))


def start(request: HttpRequest) -> HttpResponse:
    return redirect(next(all_page_links()).address)

"""Sign in and out, for everybody; the admin has its own page for this."""

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from web.menu import all_page_links
from web.pages.forms import PageForm
from web.pages.frame import with_security_policy


class SignInForm(PageForm, AuthenticationForm):
    pass


class SignIn(LoginView):
    """Sign in with login and password; then go to `next`, else to the overview (staff) or to the
    first of the person's pages."""

    template_name = "web/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_default_redirect_url(self) -> str:
        user = self.request.user
        return reverse("overview" if user.is_staff else "me")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return with_security_policy(super().dispatch(request, *args, **kwargs))


class SignOut(LogoutView):
    """POST: end the session and go to the login page."""

    next_page = "login"


def start(request: HttpRequest) -> HttpResponse:
    """Redirect to the first of the person's pages."""
    return redirect(next(all_page_links()).address)

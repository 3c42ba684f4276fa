"""The way in and out for everybody; the admin has a way of its own."""

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from subscriptions.pages.parts import Plain
from subscriptions.pages.person import strict


class SignInForm(Plain, AuthenticationForm):
    pass


class SignIn(LoginView):
    """Ask for login and password; then go where one wanted, else staff to the overview and others
    to their subscriptions."""

    template_name = "subscriptions/me/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_default_redirect_url(self) -> str:
        user = self.request.user
        return reverse("overview" if user.is_staff else "me")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return strict(super().dispatch(request, *args, **kwargs))


class SignOut(LogoutView):
    """POST: forget the session and go to the login."""

    next_page = "login"

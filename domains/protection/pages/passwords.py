"""The page that looks up a password in leaks."""

from django import forms
from django.http import HttpResponse
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from tailrace.domains.protection.pages.frame import show_page
from tailrace.domains.protection.services.exposures.password_check import (
    COST,
    MAX_LENGTH,
    CheckFailed,
    check_password,
)
from tailrace.web.accounts import budget
from tailrace.web.pages.forms import PageForm, sentence
from tailrace.web.pages.frame import PersonRequest, for_person


class PasswordForm(PageForm, forms.Form):
    """The password to check. A response never contains it."""

    password = forms.CharField(
        max_length=MAX_LENGTH,
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text="The password is not stored, and it does not leave this server.",
    )


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@for_person
@sensitive_variables()
def passwords(request: PersonRequest) -> HttpResponse:
    """GET: the form. POST: how often the password occurs in leaks."""
    form = PasswordForm(request.POST if request.method == "POST" else None)
    times, status = None, 200
    if form.is_bound and not form.is_valid():
        status = 422
    elif form.is_bound:
        budget.spend(request.user.pk, cost=COST)
        try:
            times = check_password(form.cleaned_data["password"])
        except CheckFailed as error:
            form.add_error(None, f"{sentence(error)} Try again later.")
            status = 503
    return show_page(
        request, "tailrace/protection/passwords.html", {"form": form, "times": times}, status
    )

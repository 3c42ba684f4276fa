"""The page on which users delete their own account."""

from django import forms
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from tailrace.web.accounts.deletion import DeletionRefused, request_deletion
from tailrace.web.accounts.personal_data import all_personal_data
from tailrace.web.pages.forms import PageForm
from tailrace.web.pages.frame import PersonRequest, for_person, show
from tailrace.web.security import confirmation


class DeleteAccountForm(PageForm, forms.Form):
    """Asks for the password again."""

    password = forms.CharField(
        strip=False, widget=forms.PasswordInput({"autocomplete": "current-password"})
    )

    def __init__(self, user: User, data: object = None) -> None:
        super().__init__(data)
        self.user = user

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        confirmation.check_password(self.user, password)
        return password


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def delete_account(request: PersonRequest) -> HttpResponse:
    """GET: show the data to be deleted and the form. POST: close the account; a job deletes it."""
    form = DeleteAccountForm(request.user, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            request_deletion(request.user)
        except DeletionRefused as error:
            form.add_error(None, f"{error}.")
        else:
            logout(request)
            return render(request, "tailrace/web/account_deleted.html")
    context = {"form": form, "parts": [data.description() for data in all_personal_data()]}
    return show(request, "tailrace/web/delete_account.html", context, 422 if form.is_bound else 200)

"""The page on which users delete their own account."""

from django.contrib.auth import logout
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from tailrace.web.accounts.deletion import DeletionRefused, request_deletion
from tailrace.web.accounts.personal_data import all_personal_data
from tailrace.web.pages.forms import PasswordForm
from tailrace.web.pages.frame import PersonRequest, for_person, show


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def delete_account(request: PersonRequest) -> HttpResponse:
    """GET: show the data to be deleted and the form. POST: close the account; a job deletes it."""
    form = PasswordForm(request.user, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            request_deletion(request.user)
        except DeletionRefused as error:
            form.add_error(None, f"{error}.")
        else:
            logout(request)
            return render(request, "tailrace/web/accounts/account_deleted.html")
    context = {"form": form, "parts": [data.description() for data in all_personal_data()]}
    return show(request, "tailrace/web/accounts/delete_account.html", context)

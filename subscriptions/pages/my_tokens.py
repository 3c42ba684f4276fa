"""My tokens: what lets programs act for a person."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from subscriptions import tokens
from subscriptions.models import ApiToken
from subscriptions.pages.my_preferences import page
from subscriptions.pages.parts import TokenForm
from subscriptions.pages.person import PersonRequest, for_person

LIVE = 100
"""Tokens that a person may have at once."""


@require_POST
@for_person
def make(request: PersonRequest) -> HttpResponse:
    """Make a token and show it, this once."""
    form = TokenForm(request.POST)
    if form.is_valid():
        if len(tokens.live(request.user)) >= LIVE:
            form.add_error(None, f"You have {LIVE} tokens: revoke one first.")
        else:
            said = form.cleaned_data
            try:
                made, text = tokens.make(request.user, said["name"], said["scopes"], said["days"])
            except tokens.WrongToken as error:
                form.add_error(None, str(error))
            else:
                return page(request, made=made, text=text)
    return page(request, token=form)


@require_POST
@for_person
def revoke(request: PersonRequest, id: int) -> HttpResponse:
    """Let the token open nothing any more."""
    found = get_object_or_404(ApiToken, pk=id, user=request.user)
    tokens.revoke(found)
    messages.success(request, f"The token “{found.name}” is revoked.")
    return redirect("my_preferences")

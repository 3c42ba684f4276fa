"""The page of a user's feeds: create and revoke them."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from tailrace.subscriptions.channels.rss.feeds import (
    MAX_FEEDS,
    TooManyFeeds,
    make_feed,
    revoke_feed,
)
from tailrace.subscriptions.models import Feed
from tailrace.web.pages.confirmation import confirmed
from tailrace.web.pages.forms import PageForm
from tailrace.web.pages.frame import PersonRequest, person_page, show

MAX_SHOWN = 200


class FeedForm(PageForm, forms.Form):
    title = forms.CharField(
        max_length=100, initial="Tailrace", help_text="Shown by your feed reader."
    )


@person_page("GET", "HEAD", "POST")
@confirmed
def my_feeds(request: PersonRequest) -> HttpResponse:
    """GET: list the feeds. POST: create a feed, and show its address once."""
    if request.method != "POST":
        return _show(request, FeedForm())
    form = FeedForm(request.POST)
    if form.is_valid():
        try:
            feed, address = make_feed(request.user, form.cleaned_data["title"])
        except TooManyFeeds:
            form.add_error(None, f"You already have {MAX_FEEDS} feeds. Revoke one first.")
        else:
            return _show(request, FeedForm(), new_feed=feed, address=address)
    return _show(request, form, status=422)


@person_page("POST")
def revoke(request: PersonRequest, id: int) -> HttpResponse:
    """Revoke a feed."""
    feed = get_object_or_404(Feed, pk=id, user=request.user)
    revoke_feed(feed)
    messages.success(request, f"The feed “{feed.title}” is revoked. Its address no longer works.")
    return redirect("my_feeds")


def _show(
    request: PersonRequest, form: FeedForm, status: int = 200, **context: Any
) -> HttpResponse:
    rows = Feed.objects.filter(user=request.user).order_by("-pk")[:MAX_SHOWN]
    context |= {"form": form, "feeds": rows}
    return show(request, "tailrace/subscriptions/pages/feeds.html", context, status)

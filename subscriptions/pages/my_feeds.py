"""My feeds: made here, their address shown once, and revoked."""

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST

from subscriptions.feeds import make_feed, revoke_feed
from subscriptions.models import Feed
from subscriptions.pages.parts import Plain
from subscriptions.pages.person import PersonRequest, for_person, show

LIVE = 50
"""Feeds that a person may have at once, as in the API."""
SHOWN = 200


class FeedForm(Plain, forms.Form):
    title = forms.CharField(
        max_length=100, initial="Tailrace", help_text="What your feed reader shows."
    )


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def my_feeds(request: PersonRequest) -> HttpResponse:
    """GET: the feeds. POST: make one and show its address, this once."""
    if request.method != "POST":
        return _show(request, FeedForm())
    form = FeedForm(request.POST)
    if form.is_valid() and Feed.objects.filter(user=request.user, revoked_at=None).count() >= LIVE:
        form.add_error(None, f"You have {LIVE} feeds: revoke one first.")
    if not form.is_valid():
        return _show(request, form, status=422)
    feed, address = make_feed(request.user, form.cleaned_data["title"])
    return _show(request, FeedForm(), made=feed, address=address)


@require_POST
@for_person
def revoke(request: PersonRequest, id: int) -> HttpResponse:
    """Let the feed's address open nothing any more."""
    feed = get_object_or_404(Feed, pk=id, user=request.user)
    revoke_feed(feed)
    messages.success(request, f"The feed “{feed.title}” is revoked: its address opens nothing.")
    return redirect("my_feeds")


def _show(
    request: PersonRequest,
    form: FeedForm,
    *,
    made: Feed | None = None,
    address: str = "",
    status: int = 200,
) -> HttpResponse:
    rows = Feed.objects.filter(user=request.user).order_by("-pk")
    context = {"form": form, "feeds": rows[:SHOWN], "made": made, "address": address}
    return show(request, "feeds.html", context, status)

"""The page of the unsubscribe link in mails."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from tailrace.subscriptions.channels.mail import unsubscribe as links
from tailrace.subscriptions.notifications.preferences.mute import mute, unmute
from tailrace.web.pages.frame import for_strangers


@csrf_exempt  # mail programs POST without a session (RFC 8058); the signed token authorizes
@require_http_methods(["GET", "HEAD", "POST"])
@for_strangers("unsubscribe")
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """GET: show a button. POST: unsubscribe, or undo it. 404 for an invalid link."""
    try:
        link = links.find(token)
    except links.InvalidLink:
        answer = render(request, "tailrace/subscriptions/pages/unsubscribe.html", {}, status=404)
    else:
        context: dict[str, object] = {"link": link}
        if request.method == "POST" and "undo" in request.POST:
            context["undone"] = unmute(link.user, request.POST["undo"])
            context["too_late"] = not context["undone"]
        elif request.method == "POST":
            context |= {"done": True, "undo": mute(link.user, "mail", link.topics)}
        answer = render(request, "tailrace/subscriptions/pages/unsubscribe.html", context)
    answer["Referrer-Policy"] = "no-referrer"
    answer["X-Robots-Tag"] = "noindex"
    answer["Cache-Control"] = "no-store"
    return answer

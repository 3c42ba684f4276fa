"""The page behind the link to unsubscribe that stands in each mail."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from subscriptions import unsubscribe as links


@csrf_exempt  # mail programs post from nowhere (RFC 8058); the signed token says who may do what
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """GET: a button. POST: silence it. 404 for a link that was not made here."""
    try:
        link = links.find(token)
    except links.NoSuchLink:
        answer = render(request, "subscriptions/unsubscribe.html", {}, status=404)
    else:
        if done := request.method == "POST":
            links.silence(link)
        answer = render(request, "subscriptions/unsubscribe.html", {"link": link, "done": done})
    answer["Referrer-Policy"] = "no-referrer"
    answer["X-Robots-Tag"] = "noindex"
    answer["Cache-Control"] = "no-store"
    return answer

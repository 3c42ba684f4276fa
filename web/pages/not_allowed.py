"""A page for browsers that open a URL which only accepts POST."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


class ExplainNotAllowed:
    """Middleware for the pages: adds a page to an empty 405 response if a browser sent the GET."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        wants_html = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        if response.status_code != 405 or not wants_html or response.streaming or response.content:
            return response
        page = render(request, "tailrace/web/errors/405.html", status=405)
        page["Allow"] = response["Allow"]
        return page

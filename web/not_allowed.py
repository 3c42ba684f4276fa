"""Answer a browser that opens the address of a button with a page: it was empty, with no way on."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


class ExplainNotAllowed:
    """Middleware for the pages: a body for 405, where a person sees it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        reads = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        if response.status_code != 405 or not reads or response.streaming or response.content:
            return response
        page = render(request, "tailrace/web/405.html", status=405)
        page["Allow"] = response["Allow"]
        return page

"""The search page."""

from typing import Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from tailrace.domains.records.search import searching
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.domains.records.search.searching import InvalidSearch, SearchUnavailable
from tailrace.web.accounts import budget
from tailrace.web.pages.frame import PersonRequest, for_person, show

PAGE_SIZE = 20
PAGES = searching.MOST_RESULTS // PAGE_SIZE


@require_safe
@for_person
def search(request: PersonRequest) -> HttpResponse:
    """Search for `q` in the index `index`, or in all indexes; show the page `page` of results."""
    text, index = request.GET.get("q", ""), request.GET.get("index", "")
    page = _page(request.GET.get("page", "1"))
    context: dict[str, Any] = {
        "q": text[: searching.MOST_CHARACTERS],
        "index": index,
        "indexes": backends().values(),
        "most": searching.MOST_CHARACTERS,
        "page": page,
    }
    if not text.strip():
        return show(request, "tailrace/records/search.html", context)
    budget.spend(request.user.pk, cost=searching.COST)
    status = 200
    try:
        offset = (page - 1) * PAGE_SIZE
        context["results"] = searching.search(request.user, text, index, offset, PAGE_SIZE)
    except InvalidSearch as error:
        context["problem"], status = str(error), 400
    except SearchUnavailable as error:
        context["problem"], status = str(error), 503
    return show(request, "tailrace/records/search.html", context, status)


def _page(text: str) -> int:
    if text not in [str(number) for number in range(1, PAGES + 1)]:
        raise Http404
    return int(text)

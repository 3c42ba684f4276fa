"""The search page; before a search, it shows the newest records."""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from tailrace.domains.records.models import Record
from tailrace.domains.records.models.visibility import visible_records
from tailrace.domains.records.search import searching
from tailrace.domains.records.search.facets import TITLES, Filter
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.domains.records.search.searching import InvalidSearch, SearchUnavailable
from tailrace.web.accounts import budget
from tailrace.web.pages.frame import PersonRequest, for_person, show

PAGE_SIZE = 20
NEWEST, MOST_READ = 10, 1000
"""The number of records that the page shows before a search, and of the latest that are read: most
of them may be hidden from the user."""
MOST_OF_FILTER = 100
PAGES = searching.MOST_RESULTS // PAGE_SIZE


@require_safe
@for_person
def search(request: PersonRequest) -> HttpResponse:
    """Search for `q` in the index `index`, or in all indexes; show the page `page` of results."""
    text, index = request.GET.get("q", ""), request.GET.get("index", "")
    page = _page(request.GET.get("page", "1"))
    only = Filter(**{name: request.GET.get(name, "")[:MOST_OF_FILTER] for name in TITLES})
    context: dict[str, Any] = {
        "q": text[: searching.MOST_CHARACTERS],
        "index": index,
        "indexes": backends().values(),
        "most": searching.MOST_CHARACTERS,
        "most_results": searching.MOST_RESULTS,
        "page": page,
        "only": {name: value for name in TITLES if (value := getattr(only, name))},
    }
    context["query"] = urlencode({"q": context["q"], "index": index} | context["only"])
    if not text.strip():
        latest = Record.objects.order_by("-published_at", "-id").values("pk")[:MOST_READ]
        newest = visible_records(request.user).filter(is_deleted=False, pk__in=latest)
        context["newest"] = newest.order_by("-published_at", "-id")[:NEWEST]
        return show(request, "tailrace/records/search.html", context)
    budget.spend(request.user.pk, cost=searching.COST)
    status = 200
    try:
        offset = (page - 1) * PAGE_SIZE
        results = searching.search(request.user, text, index, offset, PAGE_SIZE, only)
        context |= {"results": results, "facets": _facets(results, only, context)}
    except InvalidSearch as error:
        context["problem"], status = str(error), 400
    except SearchUnavailable as error:
        context["problem"], status = str(error), 503
    return show(request, "tailrace/records/search.html", context, status)


def _facets(results: searching.Results, only: Filter, context: dict[str, Any]) -> list[Any]:
    """Return title and values of each facet with a choice. A value links to the results with it,
    or without it if it is chosen."""
    search = {"q": context["q"], "index": context["index"]}
    facets = []
    for name, values in results.facets.items():
        chosen = getattr(only, name)
        if len(values) < 2 and not chosen:
            continue
        others = {key: value for key, value in context["only"].items() if key != name}
        links = [
            {
                "label": each.label,
                "count": each.count,
                "chosen": each.value == chosen,
                "query": urlencode(
                    search | others | ({} if each.value == chosen else {name: each.value})
                ),
            }
            for each in values
        ]
        facets.append({"title": TITLES[name], "name": name, "links": links})
    return facets


def _page(text: str) -> int:
    if text not in [str(number) for number in range(1, PAGES + 1)]:
        raise Http404
    return int(text)

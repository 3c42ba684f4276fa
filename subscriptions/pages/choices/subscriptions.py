"""The page of a user's subscriptions: all options, by family."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from tailrace.events.catalog.topics import EVERYTHING, topic_names
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.preferences import options
from tailrace.subscriptions.notifications.preferences.options import Topic, UserOptions
from tailrace.subscriptions.types.channel import all_channels
from tailrace.web.pages.frame import PersonRequest, person_page, show

MAX_OPEN = 20
"""Maximum event types in the families that a filter opens. The other families show only how many of
their types match, so that the page is small."""


@dataclass(frozen=True)
class Filter:
    """The filter of the page: words in the name or title of a topic, and a kind of rows."""

    q: str = ""
    only: str = ""
    """`own`: only topics with the user's own subscriptions; `notified`: only roles in which the
    user was notified."""

    @classmethod
    def of(cls, request: HttpRequest) -> "Filter":
        query = request.GET
        only = query.get("only", "")
        text = " ".join(query.get("q", "").split())
        return cls(text, only if only in ("own", "notified") else "")

    def __bool__(self) -> bool:
        return bool(self.q or self.only)

    def matches(self, topic: Topic, chosen: set[str], notified: set[str]) -> bool:
        text = f"{topic.name} {topic.title}".casefold()
        if self.only == "own" and topic.name not in chosen:
            return False
        if self.only == "notified" and notified.isdisjoint(topic.offers):
            return False
        return all(word in text for word in self.q.casefold().split())


@person_page("GET")
def my_subscriptions(request: PersonRequest) -> HttpResponse:
    """List all families with matching event types. Open are the family in `?open=` and, if there
    is a filter, the families with at most MAX_OPEN types in total."""
    search = Filter.of(request)
    families = [family for family in _families(request, search) if family["topics"]]
    left = MAX_OPEN if search else 0
    for family in families:
        fits = len(family["topics"]) <= left
        if fits or family["name"] == request.GET.get("open"):
            family |= _tables(request, family["topics"], search)
        if fits:
            left -= len(family["topics"])
    context = {
        "families": families,
        "search": search,
        "matches": sum(len(family["topics"]) for family in families),
        "chosen": EventSubscription.objects.filter(user=request.user).count(),
        "unreachable": options.unreachable_channels(request.user),
    }
    return show(request, "tailrace/subscriptions/pages/subscriptions/subscriptions.html", context)


@person_page("GET")
def my_family(request: PersonRequest) -> HttpResponse:
    """Return the tables of one family, for htmx."""
    name = request.GET.get("name", "")
    search = Filter.of(request)
    for family in _families(request, search):
        if family["name"] == name:
            family |= _tables(request, family["topics"], search)
            context = {"family": family, "search": search, "fragment": True}
            return render(
                request, "tailrace/subscriptions/pages/subscriptions/family.html", context
            )
    raise Http404


@person_page("POST")
def reset(request: PersonRequest) -> HttpResponse:
    """Delete all subscriptions of the user, if the box `sure` is ticked."""
    if "sure" not in request.POST:
        messages.error(request, "Nothing was reset. Tick the box to confirm.")
    else:
        count = EventSubscription.objects.filter(user=request.user).delete()[0]
        plural = "" if count == 1 else "s"
        messages.success(request, f"{count} subscription{plural} reset to default.")
    return redirect("my_subscriptions")


def _families(request: PersonRequest, search: Filter) -> list[dict[str, Any]]:
    """Return all families with their matching topics: the family itself first, then its types."""
    rows = EventSubscription.objects.filter(user=request.user)
    chosen = set(rows.values_list("event_type", flat=True))
    notified = options.notified_roles(request.user) if search.only == "notified" else set[str]()

    def family_with(topics: list[Topic]) -> dict[str, Any]:
        matching = [topic for topic in topics if search.matches(topic, chosen, notified)]
        return _family(topics, matching, chosen)

    families = [family_with([options.find_topic(EVERYTHING)])]
    for name, types in options.families().items():
        topics = [options.find_topic(cls.name) for cls in types]
        if any(name in topic_names(cls)[1:] for cls in types):
            topics = [options.find_topic(name), *(topic for topic in topics if topic.name != name)]
        families.append(family_with(topics))
    return families


def _family(topics: list[Topic], matching: list[Topic], chosen: set[str]) -> dict[str, Any]:
    return {
        "name": topics[0].name,
        "slug": topics[0].slug,
        "title": topics[0].short_name,
        "types": max(len(topics) - 1, 1),
        "chosen": sum(topic.name in chosen for topic in topics),
        "topics": matching,
    }


def _tables(request: PersonRequest, topics: list[Topic], search: Filter) -> dict[str, Any]:
    """Return a table per topic, with roles as rows and channels as columns."""
    user_options = UserOptions(request.user, topics)
    notified = options.notified_roles(request.user)
    tables = []
    for topic in topics:
        offered = set[str]().union(*topic.offers.values())
        keys = [key for key in all_channels() if key in offered]
        rows = user_options.table(topic, keys)
        if search.only == "notified":
            rows = {role: row for role, row in rows.items() if role in notified}
        if rows:
            tables.append((topic, {"keys": keys, "rows": rows}))
    return {"tables": tables, "notified": notified, "loaded": True}

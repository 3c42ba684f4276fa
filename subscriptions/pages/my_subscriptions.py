"""My subscriptions: all one can hear of, family by family, and what one chose."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from subscriptions import channels, matrix
from subscriptions.lineage import EVERYTHING, lineage
from subscriptions.matrix import RoleRow, Topic, Words
from subscriptions.models import EventSubscription
from subscriptions.pages.person import PersonRequest, for_person, show

OPEN = 3
"""Families that a filter leaves open at once; more are opened by hand, so that pages stay light."""


@dataclass(frozen=True)
class Filter:
    """What the reader wants to see: words of a type's name or description; only some rows."""

    q: str = ""
    only: str = ""
    """`own`: types with choices of one's own; `told`: roles in which one was told of something."""

    @classmethod
    def of(cls, request: HttpRequest) -> "Filter":
        asked = request.GET
        only = asked.get("only", "")
        return cls(" ".join(asked.get("q", "").split()), only if only in ("own", "told") else "")

    def __bool__(self) -> bool:
        return bool(self.q or self.only)

    def likes(self, topic: Topic, chosen: set[str]) -> bool:
        text = f"{topic.name} {topic.title}".casefold()
        wanted = all(word in text for word in self.q.casefold().split())
        return wanted and (self.only != "own" or topic.name in chosen)


@require_GET
@for_person
def my_subscriptions(request: PersonRequest) -> HttpResponse:
    """The families. Open are the one that `?open=` names, and those few that a filter leaves."""
    asked = Filter.of(request)
    chosen = _chosen(request)
    found = [one for one in _families(asked, chosen) if one["topics"]]
    for one in found:
        wanted = one["name"] == request.GET.get("open")
        if wanted or (asked and len(found) <= OPEN):
            one |= _body(request, one["topics"], asked)
    context = {
        "families": found,
        "asked": asked,
        "chosen": EventSubscription.objects.filter(user=request.user).count(),
        "lacking": matrix.lacking(request.user),
    }
    return show(request, "subscriptions.html", context)


@require_GET
@for_person
def my_family(request: PersonRequest) -> HttpResponse:
    """The tables of one family, for htmx to put in place."""
    name = request.GET.get("name", "")
    asked = Filter.of(request)
    chosen = _chosen(request)
    found = next((one for one in _families(asked, chosen) if one["name"] == name), None)
    if found is None:
        raise Http404
    found |= _body(request, found["topics"], asked)
    context = {"family": found, "asked": asked, "fragment": True}
    return render(request, "subscriptions/me/family.html", context)


@require_POST
@for_person
def reset(request: PersonRequest) -> HttpResponse:
    """Forget all choices of one's own, if `sure`."""
    if "sure" not in request.POST:
        messages.error(request, "Nothing was reset: tick that you are sure.")
    else:
        count = EventSubscription.objects.filter(user=request.user).delete()[0]
        messages.success(request, f"{count} choice{'' if count == 1 else 's'} reset to default.")
    return redirect("my_subscriptions")


def _chosen(request: PersonRequest) -> set[str]:
    rows = EventSubscription.objects.filter(user=request.user)
    return set(rows.values_list("event_type", flat=True))


def _families(asked: Filter, chosen: set[str]) -> list[dict[str, Any]]:
    """Return each family with the topics that the filter leaves: itself first, then its types."""
    everything = matrix.topic(EVERYTHING)
    found = [_family(EVERYTHING, [everything], asked, chosen)]
    for name, types in matrix.families().items():
        topics = [matrix.topic(one.name) for one in types]
        if any(name in lineage(one)[1:] for one in types):
            topics = [matrix.topic(name), *(one for one in topics if one.name != name)]
        found.append(_family(name, topics, asked, chosen))
    return found


def _family(name: str, topics: list[Topic], asked: Filter, chosen: set[str]) -> dict[str, Any]:
    return {
        "name": name,
        "slug": matrix.slug(name),
        "title": matrix.family_words(name),
        "types": sum(1 for one in topics if one.name != name or len(topics) == 1),
        "chosen": sum(1 for one in topics if one.name in chosen),
        "topics": [one for one in topics if asked.likes(one, chosen)],
    }


def _body(request: PersonRequest, topics: list[Topic], asked: Filter) -> dict[str, Any]:
    words = Words(request.user, topics)
    told = matrix.told_as(request.user)
    tables = [(one, table) for one in topics if (table := _table(words, one, told, asked))["rows"]]
    return {"tables": tables, "told": told, "loaded": True}


def _table(words: Words, topic: Topic, told: set[str], asked: Filter) -> dict[str, Any]:
    has = set[str]().union(*topic.offers.values())
    keys = [key for key in channels.everything() if key in has]
    rows: list[RoleRow] = words.table(topic, keys)
    if asked.only == "told":
        rows = [row for row in rows if row.role in told]
    return {"keys": keys, "rows": rows}

"""The page of the indexes, for operators: replay failed jobs, or index all records again."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from tailrace.domains.records.search.indexing import upkeep
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.web.pages.frame import PersonRequest, for_person, show

ACTIONS = {"replay": upkeep.replay_failed, "reindex": upkeep.reindex_all}


@require_safe
@for_person
def indexes(request: PersonRequest) -> HttpResponse:
    _check(request)
    return show(request, "tailrace/records/indexes.html", {"indexes": upkeep.index_states()})


@require_POST
@for_person
def change_index(request: PersonRequest, name: str, action: str) -> HttpResponse:
    """Replay the failed jobs of an index, or index all records again in it."""
    _check(request)
    if name not in backends() or action not in ACTIONS:
        raise Http404
    messages.success(request, ACTIONS[action](name, request.user))
    return redirect("records:indexes")


def _check(request: PersonRequest) -> None:
    if not request.user.has_perm(upkeep.REPLAY):
        raise PermissionDenied

"""My blocks: people whose doings one hears nothing of."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from subscriptions.models import Block
from subscriptions.pages.my_preferences import page
from subscriptions.pages.parts import BlockForm
from subscriptions.pages.person import PersonRequest, for_person


@require_POST
@for_person
def block(request: PersonRequest) -> HttpResponse:
    """Block whom the form names; done again, it changes nothing."""
    form = BlockForm(request.user, request.POST)
    if not form.is_valid():
        return page(request, blocking=form)
    Block.objects.get_or_create(user=request.user, blocked=form.found)
    messages.success(request, f"You hear nothing of what {form.found} does.")
    return redirect("my_preferences")


@require_POST
@for_person
def unblock(request: PersonRequest, id: int) -> HttpResponse:
    found = get_object_or_404(Block, pk=id, user=request.user)
    found.delete()
    messages.success(request, f"{found.blocked} is not blocked any more.")
    return redirect("my_preferences")

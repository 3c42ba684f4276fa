"""The page that edits one subscription: on, off or default, pace, pattern and a preview."""

import math
from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience.preview import COST, preview
from tailrace.subscriptions.notifications.preferences import options
from tailrace.subscriptions.notifications.preferences.options import Option
from tailrace.subscriptions.notifications.rendering.event_summary import summarize
from tailrace.subscriptions.types.roles import role_words
from tailrace.web.accounts import budget
from tailrace.web.pages.frame import PersonRequest, by_htmx, person_page, show

PREVIEW_DAYS = 7
PREVIEW_EVENTS = 5

Pace = EventSubscription.Pace
State = EventSubscription.State
CHOICES = (*State.choices, ("default", "default"))


class SubscriptionForm(forms.Form):
    """The form of the editor; the model checks its values."""

    choice = forms.ChoiceField(
        choices=CHOICES, error_messages={"required": "Choose on, off or default."}
    )
    pace = forms.ChoiceField(choices=Pace.choices, required=False)
    subject_pattern = forms.CharField(required=False, max_length=200)

    def row(self, request: PersonRequest, option: Option) -> EventSubscription | None:
        """Return the unsaved subscription; None if the form chooses the default or has errors."""
        if not self.is_valid() or self.cleaned_data["choice"] == "default":
            return None
        values = self.cleaned_data
        on = values["choice"] == State.ON
        row = EventSubscription(**_key(request, option))
        row.state = values["choice"]
        row.pace = (values["pace"] if on else "") or Pace.INSTANT
        row.subject_pattern = values["subject_pattern"]
        try:
            row.full_clean(validate_unique=False, validate_constraints=False)
        except ValidationError as error:
            self.add_error(None, _on_form_fields(error))
            return None
        return row


@person_page("GET", "HEAD", "POST")
def edit(request: PersonRequest) -> HttpResponse:
    """GET: show the form. POST: save the subscription."""
    option = _option(request, request.POST if request.method == "POST" else request.GET)
    if request.method != "POST":
        own = option.exact or EventSubscription(state="default")
        values = {"choice": own.state, "pace": own.pace, "subject_pattern": own.subject_pattern}
        return _show(request, option, SubscriptionForm(initial=values))
    form = SubscriptionForm(request.POST)
    row = form.row(request, option)
    if form.errors:
        return _show(request, option, form, status=422)
    _save(request, option, row)
    return _saved_response(request, _option(request, request.POST))


@person_page("POST")
def show_preview(request: PersonRequest) -> HttpResponse:
    """Show the notifications that the form's subscription would have sent in the last days."""
    option = _option(request, request.POST)
    form = SubscriptionForm(request.POST)
    row = form.row(request, option)
    context: dict[str, Any] = {"days": PREVIEW_DAYS, "errors": form.errors}
    if not form.errors:
        try:
            budget.spend(request.user.pk, cost=COST)
        except budget.BudgetExceeded as error:
            context["wait"] = error.wait
        else:
            context |= _preview(request, row or _inherited_subscription(request, option))
    response = render(request, "tailrace/subscriptions/pages/subscriptions/preview.html", context)
    if "wait" in context:
        response.status_code = 429
        response["Retry-After"] = str(math.ceil(context["wait"]))
    return response


def _option(request: PersonRequest, query: QueryDict) -> Option:
    name, role, channel = (query.get(key, "") for key in ("type", "role", "channel"))
    try:
        return options.find_option(request.user, name, role, channel)
    except options.UnknownTopic:
        raise Http404 from None


def _key(request: PersonRequest, option: Option) -> dict[str, Any]:
    topic, role = option.topic.name, option.role
    return EventSubscription.own_key(request.user, topic, role, option.channel)


def _inherited_subscription(request: PersonRequest, option: Option) -> EventSubscription | None:
    """Return an unsaved subscription with the settings that apply without an own row for this
    option. None if each type has its own default."""
    row = EventSubscription(**_key(request, option))
    source = option.default if option.exact or option.own is None else option.own
    if source is None and option.topic.is_wide:
        return None
    row.state = source.state if source else State.OFF
    if source:
        row.pace, row.subject_pattern = source.pace, source.subject_pattern
    return row


def _preview(request: PersonRequest, row: EventSubscription | None) -> dict[str, Any]:
    if row is None:
        return {"by_type": True}
    if row.state == State.OFF:
        return {"off": True}
    result = preview(row, PREVIEW_DAYS, request.user)
    events = list(summarize(request.user, result.first[:PREVIEW_EVENTS]).values())
    return {"preview": result, "events": events, "more": result.count - len(events)}


def _save(request: PersonRequest, option: Option, row: EventSubscription | None) -> None:
    key = _key(request, option)
    if row is None:
        EventSubscription.objects.filter(**key).delete()
        return
    values = {"state": row.state, "pace": row.pace, "subject_pattern": row.subject_pattern}
    EventSubscription.objects.update_or_create(**key, defaults=values)


def _show(
    request: PersonRequest, option: Option, form: SubscriptionForm, status: int = 200
) -> HttpResponse:
    dialog = by_htmx(request)
    context = {
        "option": option,
        "form": form,
        "paces": Pace.choices,
        "days": PREVIEW_DAYS,
        "dialog": dialog,
    }
    template = "subscription_form" if dialog else "subscription_editor"
    path = f"tailrace/subscriptions/pages/subscriptions/{template}.html"
    return (render if dialog else show)(request, path, context, status=status)


def _saved_response(request: PersonRequest, option: Option) -> HttpResponse:
    topic = option.topic
    name = f"{option.channel} about “{topic.title}” as {role_words(option.role)}"
    status = f"Saved. {name}: {option.label}{'' if option.exact else ', by default'}."
    if by_htmx(request):
        response = render(request, "tailrace/web/status.html", {"status": status})
        response["HX-Trigger"] = "chosen"
        return response
    messages.success(request, status)
    query = urlencode({"open": topic.family})
    return cast(HttpResponse, redirect(f"{reverse('my_subscriptions')}?{query}#{topic.slug}"))


def _on_form_fields(error: ValidationError) -> ValidationError:
    """Move errors of fields that are not in the form to its field `choice`."""
    errors: dict[str, Any] = {}
    for name, field_errors in error.error_dict.items():
        field = name if name in SubscriptionForm.base_fields else "choice"
        errors.setdefault(field, []).extend(field_errors)
    return ValidationError(errors)

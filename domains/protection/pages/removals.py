"""The pages of removal requests: the board, a request with its history, start, confirm,
withdraw."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from pydantic import ValidationError

from tailrace.domains.protection.models import RemovalRequest
from tailrace.domains.protection.pages.frame import show_page
from tailrace.domains.protection.services.removals import board, decisions
from tailrace.domains.protection.services.removals.brokers import Broker
from tailrace.domains.protection.services.removals.person import Person, decrypted
from tailrace.environment.field_errors import field_errors
from tailrace.net.encryption import DecryptionError
from tailrace.subscriptions.models import PlanSubscription
from tailrace.web.accounts import budget
from tailrace.web.pages.forms import PageForm, sentence
from tailrace.web.pages.frame import PersonRequest, for_person
from tailrace.web.pages.lists import list_page

START_COST = 5
"""The cost of starting removals in ordinary requests."""
ACTIONS = {
    "done": (decisions.done, "Thank you. We will check whether the broker still lists you."),
    "withdraw": (decisions.withdraw, "The request is withdrawn, and your data in it is deleted."),
}


class StartForm(PageForm, forms.Form):
    """The person to remove, and the brokers."""

    name = forms.CharField(max_length=100, label="Full name", help_text="First and last name.")
    email = forms.EmailField(
        max_length=254, label="Mail address", help_text="Brokers answer to this address."
    )
    city = forms.CharField(required=False, max_length=100, label="City")
    region = forms.CharField(
        required=False, max_length=100, label="Region", help_text="State, county or province."
    )
    phone = forms.CharField(required=False, max_length=100, label="Phone number")
    brokers = forms.MultipleChoiceField(
        label="Data brokers",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one broker."},
    )

    def __init__(self, *args: Any, brokers: list[Broker], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["brokers"]
        assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101
        field.choices = [(broker.key, _label(broker)) for broker in brokers]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            try:
                cleaned["person"] = Person(**{name: cleaned[name] for name in Person.model_fields})
            except ValidationError as error:
                for each in field_errors(error, cleaned):
                    self.add_error(str(each.path[0]), sentence(each.detail))
        return cleaned


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def removals(request: PersonRequest) -> HttpResponse:
    """GET: the board, or one of its columns in full. POST: start requests at the chosen brokers."""
    brokers = board.available_brokers(request.user)
    if request.method != "POST":
        if "column" in request.GET:
            return _column(request, request.GET["column"])
        initial = {"name": request.user.get_full_name(), "email": request.user.email}
        return _show(request, StartForm(initial=initial, brokers=brokers))
    budget.spend(request.user.pk, cost=START_COST)
    form = StartForm(request.POST, brokers=brokers)
    if form.is_valid():
        try:
            keys, person = form.cleaned_data["brokers"], form.cleaned_data["person"]
            rows = decisions.start(request.user, keys, person)
        except decisions.Refused as error:
            form.add_error("brokers" if error.field == "brokers" else None, sentence(error))
        else:
            plural = "" if len(rows) == 1 else "s"
            messages.success(request, f"{len(rows)} request{plural} started.")
            return redirect("protection:removals")
    return _show(request, form, status=422)


@require_safe
@for_person
def removal(request: PersonRequest, id: int) -> HttpResponse:
    """Show a request: its next step, the data that the broker receives, and its history."""
    row = _find_request(request, id)
    card = board.card_of(row)
    context = {
        **card,
        "is_served": _is_served(request),
        "fields": _fields(row, card["broker"]),
        "changes": board.history_of(row),
    }
    return show_page(request, "tailrace/protection/removals/removal.html", context)


@require_POST
@for_person
def decide(request: PersonRequest, id: int, action: str) -> HttpResponse:
    """Confirm that the user's part of a request is done, or withdraw the request."""
    if action not in ACTIONS:
        raise Http404
    row = _find_request(request, id)
    call, message = ACTIONS[action]
    try:
        call(row, request.user)
    except decisions.Refused as error:
        messages.error(request, sentence(error))
    else:
        messages.success(request, message)
    return redirect("protection:removal", row.pk)


def _find_request(request: PersonRequest, id: int) -> RemovalRequest:
    return get_object_or_404(RemovalRequest.objects.filter(user=request.user), pk=id)


def _is_served(request: PersonRequest) -> bool:
    return PlanSubscription.objects.serves(request.user.pk)


def _show(request: PersonRequest, form: StartForm, status: int = 200) -> HttpResponse:
    columns = board.columns_of(request.user)
    context = {"form": form, "columns": columns, "is_served": _is_served(request)}
    return show_page(request, "tailrace/protection/removals/board.html", context, status)


def _column(request: PersonRequest, key: str) -> HttpResponse:
    column = next((column for column in board.COLUMNS if column.key == key), None)
    if column is None:
        raise Http404
    rows, older = list_page(request, board.rows_of(request.user, column))
    context = {
        "column": column,
        "cards": [board.card_of(row) for row in rows],
        "older": older,
        "query": f"column={key}",
    }
    return show_page(request, "tailrace/protection/removals/column.html", context)


def _fields(row: RemovalRequest, broker: Broker | None) -> dict[str, str]:
    """Return the data that the broker receives; nothing if it cannot be decrypted or is deleted."""
    if broker is None or not row.person:
        return {}
    try:
        return broker.filled(decrypted(row.person))
    except DecryptionError:
        return {}


def _label(broker: Broker) -> str:
    method = board.METHOD_WORDS[broker.method]
    return f"{broker.name}: {method} (last tested {broker.working_as_of:%B %Y})"

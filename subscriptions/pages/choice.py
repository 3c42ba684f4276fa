"""The editor of one choice: on, off or as by default; of mail also the pace; and a preview."""

from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from jobs import bucket
from subscriptions import matrix
from subscriptions.matrix import Spot
from subscriptions.models import EventSubscription
from subscriptions.pages.lines import lines
from subscriptions.pages.person import PersonRequest, by_htmx, for_person, show
from subscriptions.preview import preview

DAYS = 7
LISTED = 5
PREVIEWS_PER_SECOND, PREVIEWS_AT_ONCE = 0.5, 20

Pace = EventSubscription.Pace
State = EventSubscription.State
CHOICES = (*State.choices, ("default", "default"))


class ChoiceForm(forms.Form):
    """What the editor sends. What it means is checked by the row that it makes."""

    choice = forms.ChoiceField(
        choices=CHOICES, error_messages={"required": "Choose on, off or default."}
    )
    pace = forms.ChoiceField(choices=Pace.choices, required=False)
    subject_pattern = forms.CharField(required=False, max_length=200)

    def row(self, request: PersonRequest, spot: Spot) -> EventSubscription | None:
        """Return the row that is asked for, unsaved; None for the default, or if it is wrong:
        then `errors` says what."""
        if not self.is_valid() or self.cleaned_data["choice"] == "default":
            return None
        said = self.cleaned_data
        on = said["choice"] == State.ON
        row = _row(request, spot)
        row.state = said["choice"]
        row.pace = (said["pace"] if on else "") or Pace.INSTANT
        row.subject_pattern = said["subject_pattern"]
        try:
            row.full_clean(validate_unique=False, validate_constraints=False)
        except ValidationError as error:
            self.add_error(None, _as_shown(error))
            return None
        return row


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def choice(request: PersonRequest) -> HttpResponse:
    """GET: the editor. POST: keep the choice."""
    asked = request.POST if request.method == "POST" else request.GET
    spot = _spot(request, asked)
    if request.method != "POST":
        return _editor(request, spot, ChoiceForm(initial=_initial(spot)))
    form = ChoiceForm(request.POST)
    row = form.row(request, spot)
    if form.errors:
        return _editor(request, spot, form, status=422)
    _keep(request, spot, row)
    return _kept(request, matrix.spot(request.user, spot.topic.name, spot.role, spot.channel))


@require_POST
@for_person
def choice_preview(request: PersonRequest) -> HttpResponse:
    """What the choice would have brought in the last days; nothing is kept."""
    spot = _spot(request, request.POST)
    form = ChoiceForm(request.POST)
    row = form.row(request, spot)
    context: dict[str, Any] = {"days": DAYS, "errors": form.errors}
    if not form.errors:
        if wait := bucket.take(
            f"preview:user:{request.user.pk}", PREVIEWS_PER_SECOND, PREVIEWS_AT_ONCE
        ):
            context["wait"] = wait
        else:
            context |= _brought(request, row or _as_others_say(request, spot))
    return render(request, "subscriptions/me/preview.html", context)


def _spot(request: PersonRequest, asked: QueryDict) -> Spot:
    name, role, channel = (asked.get(key, "") for key in ("type", "role", "channel"))
    try:
        return matrix.spot(request.user, name, role, channel)
    except matrix.NoSuchTopic:
        raise Http404 from None


def _row(request: PersonRequest, spot: Spot) -> EventSubscription:
    return EventSubscription(
        user=request.user, event_type=spot.topic.name, role=spot.role, channel=spot.channel
    )


def _as_others_say(request: PersonRequest, spot: Spot) -> EventSubscription | None:
    """Return a row that says what counts without one: a wider one of the person's, or a default;
    None where each type has its own default."""
    row = _row(request, spot)
    said = spot.default if spot.exact or spot.own is None else spot.own
    if said is None and spot.topic.is_wide:
        return None
    row.state = State.OFF if said is None else said.state
    if said is not None:
        row.pace, row.subject_pattern = said.pace, said.subject_pattern
    return row


def _brought(request: PersonRequest, row: EventSubscription | None) -> dict[str, Any]:
    if row is None:
        return {"by_type": True}
    if row.state == State.OFF:
        return {"off": True}
    found = preview(row, DAYS)
    shown = lines(request.user, [event.id for event in found.first[:LISTED]])
    return {"found": found, "lines": list(shown.values()), "more": found.count - len(shown)}


def _initial(spot: Spot) -> dict[str, str]:
    own = spot.exact
    if own is None:
        return {"choice": "default", "pace": Pace.INSTANT, "subject_pattern": ""}
    return {"choice": own.state, "pace": own.pace, "subject_pattern": own.subject_pattern}


def _keep(request: PersonRequest, spot: Spot, row: EventSubscription | None) -> None:
    place: dict[str, Any] = {
        "user": request.user, "group": None, "event_type": spot.topic.name, "role": spot.role,
        "channel": spot.channel,
    }  # fmt: skip
    if row is None:
        EventSubscription.objects.filter(**place).delete()
        return
    said = {"state": row.state, "pace": row.pace, "subject_pattern": row.subject_pattern}
    EventSubscription.objects.update_or_create(**place, defaults=said)


def _editor(request: PersonRequest, spot: Spot, form: ChoiceForm, status: int = 200) -> Any:
    dialog = by_htmx(request)
    context = {"spot": spot, "form": form, "paces": Pace.choices, "days": DAYS, "dialog": dialog}
    if dialog:
        return render(request, "subscriptions/me/editor.html", context, status=status)
    return show(request, "choice.html", context, status=status)


def _kept(request: PersonRequest, spot: Spot) -> HttpResponse:
    what = f"{spot.channel} about “{spot.topic.title}” as {_words(spot.role)}: {spot.words}"
    said = f"Saved. {what}{'' if spot.exact else ', by default'}."
    if by_htmx(request):
        answer = render(request, "subscriptions/me/said.html", {"said": said})
        answer["HX-Trigger"] = "chosen"
        return answer
    messages.success(request, said)
    family = spot.topic.family
    where = f"{reverse('my_subscriptions')}?{urlencode({'open': family})}#{spot.topic.slug}"
    return cast(HttpResponse, redirect(where))


def _words(role: str) -> str:
    return role.replace("_", " ")


def _as_shown(error: ValidationError) -> ValidationError:
    """Return the model's errors on the fields that the editor has, the rest in one line."""
    shown: dict[str, Any] = {}
    for name, found in error.error_dict.items():
        field = name if name in ChoiceForm.base_fields else "choice"
        shown.setdefault(field, []).extend(found)
    return ValidationError(shown)

"""The form of a source, with fields for the settings of every format."""

from typing import Any

from django import forms

from tailrace.domains.records.models import Source
from tailrace.domains.records.models.source import NAME
from tailrace.domains.records.sources.formats import formats
from tailrace.domains.records.sources.upkeep.checks import problems
from tailrace.jobs.models.schedule import LIMITS
from tailrace.net.ssrf_guard import MAX_URL_LENGTH
from tailrace.web.pages.forms import PageForm

MAX_SETTING = 500
SHARED_FIELDS = ("url", "cron", "kind")
"""Names that are both fields of the form and keys of `problems`."""


class SourceForm(PageForm, forms.Form):
    """The form of a source. Only a new source has the field `name`."""

    name = forms.CharField(
        max_length=60,
        validators=[NAME],
        help_text="The prefix of the identifiers of its records. It cannot be changed later."
        " Lower-case letters, digits and hyphens.",
    )
    kind = forms.ChoiceField(label="Format")
    url = forms.CharField(
        max_length=MAX_URL_LENGTH,
        label="Address",
        help_text="A public URL with https://, such as https://example.org/oai.",
    )
    cron = forms.CharField(
        max_length=LIMITS["cron"],
        initial="0 3 * * *",
        label="Read at",
        help_text="A cron expression in UTC: minute, hour, day, month, weekday.",
    )

    def __init__(self, *args: Any, source: Source | None = None, **kwargs: Any) -> None:
        initial = _initial(source) if source else {}
        super().__init__(*args, initial=initial, **kwargs)
        self.source = source
        if source is not None:
            del self.fields["name"]
        self.fields["kind"].choices = [  # type: ignore[attr-defined]
            (name, form.label) for name, form in formats().items()
        ]
        for kind, form in formats().items():
            for name, info in form.Settings.model_fields.items():
                default = f" Default: {info.default}." if info.default else ""
                self.fields[f"{kind}-{name}"] = forms.CharField(
                    required=False,
                    max_length=MAX_SETTING,
                    label=f"{form.label}: {name.replace('_', ' ')}",
                    help_text=f"{info.description or ''}{default}",
                )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        kind, url, cron = (cleaned.get(name) or "" for name in ("kind", "url", "cron"))
        cleaned["settings"] = {
            name: value
            for name in (formats()[kind].Settings.model_fields if kind else ())
            if (value := cleaned.get(f"{kind}-{name}"))
        }
        for field, problem in problems(kind, url, cleaned["settings"], cron).items():
            if not (field in SHARED_FIELDS and field in self.errors):
                self.add_error(field if field in SHARED_FIELDS else None, problem)
        return cleaned

    def values(self) -> dict[str, Any]:
        names = ("kind", "url", "settings", "cron")
        return {name: self.cleaned_data[name] for name in names}


def _initial(source: Source) -> dict[str, Any]:
    settings = {f"{source.kind}-{name}": value for name, value in source.settings.items()}
    return {"kind": source.kind, "url": source.url, "cron": source.cron, **settings}

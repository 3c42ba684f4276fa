"""The forms of depositions."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from tailrace.domains.records.depositions.decisions import MAX_REASON
from tailrace.domains.records.depositions.languages import LANGUAGES
from tailrace.domains.records.models import Deposition
from tailrace.web.pages.forms import PageForm


class _FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """A field for any number of files; `clean` returns a list."""

    widget = _FilesInput

    def clean(self, data: Any, initial: Any = None) -> Any:
        return [super(FilesField, self).clean(file, initial) for file in data or []]


class DepositionForm(PageForm, forms.Form):
    title = forms.CharField(max_length=1000, label="Title")
    description = forms.CharField(
        required=False, max_length=50_000, widget=forms.Textarea(attrs={"rows": 5})
    )
    creators = forms.CharField(
        max_length=30_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One per line, such as Novak, Ana.",
    )
    keywords = forms.CharField(required=False, max_length=20_000, help_text="Separated by commas.")
    language = forms.ChoiceField(
        required=False, choices=[("", "unknown"), *((code, code) for code in sorted(LANGUAGES))]
    )
    access = forms.ChoiceField(
        choices=[("open", "open: for everybody"), ("closed", "closed: only for you")]
    )
    file = FilesField(required=False, label="Files", help_text="Files of any type.")

    @classmethod
    def of(cls, row: Deposition) -> "DepositionForm":
        """Return the form filled with the metadata of a deposition."""
        lists = {"creators": "\n", "keywords": ", "}
        initial: dict[str, Any] = dict(row.metadata)
        for name, separator in lists.items():
            values = initial.get(name)
            if isinstance(values, list):
                initial[name] = separator.join(map(str, values))
        return cls(initial=initial)

    def metadata(self) -> dict[str, Any]:
        data = {name: value for name, value in self.cleaned_data.items() if name != "file"}
        creators = _parts(data["creators"].splitlines())
        return {**data, "creators": creators, "keywords": _parts(data["keywords"].split(","))}

    def sent_files(self) -> list[UploadedFile]:
        files: list[UploadedFile] = self.cleaned_data["file"]
        return files


class ReasonForm(PageForm, forms.Form):
    reason = forms.CharField(max_length=MAX_REASON, label="Reason")


def _parts(values: list[str]) -> list[str]:
    return [text for value in values if (text := value.strip())]

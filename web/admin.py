"""The admin of API tokens. It creates none: whoever creates a token can act as its user. Users
create their own, and operators use `manage.py make_token`."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists.several import filter_in_words
from tailrace.jobs.runtime import audit
from tailrace.web.accounts import tokens
from tailrace.web.accounts.security.log import record
from tailrace.web.event_types import TokenChanged
from tailrace.web.models import ApiToken


class ApiTokenForm(forms.ModelForm):
    """The event types and the source of a token with the scope events:write."""

    class Meta:
        model = ApiToken
        fields = ("event_types", "event_source")

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        for name, check in (
            ("event_types", tokens.checked_event_types),
            ("event_source", tokens.checked_event_source),
        ):
            if name in values:
                try:
                    values[name] = check(values[name])
                except tokens.WrongToken as error:
                    self.add_error(name, str(error))
        if not self.errors and values:
            try:
                tokens.check_rights(
                    self.instance.scopes, values["event_types"], values["event_source"]
                )
            except tokens.WrongToken as error:
                self.add_error(None, str(error))
        return values


@admin.register(ApiToken)
class ApiTokenAdmin(ModelAdmin):
    """Lists and revokes tokens. The text of a token is never shown."""

    form = ApiTokenForm
    list_display = ("user", "name", "scopes", "event_types", "event_source", "last_used_at",
                    "expires_at", "revoked_at")  # fmt: skip
    list_select_related = ("user",)
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("user__username", "name")
    readonly_fields = ("user", "name", "scopes", "created_at", "last_used_at", "expires_at",
                       "revoked_at")  # fmt: skip
    fields = ("user", "name", "scopes", "event_types", "event_source", "created_at",
              "last_used_at", "expires_at", "revoked_at")  # fmt: skip
    actions = ("revoke",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        fields = {"event_types": obj.event_types, "event_source": obj.event_source}
        record(TokenChanged, obj.user, token=obj.pk, token_name=obj.name, **fields)

    @admin.action(description="Revoke the selected tokens")
    def revoke(self, request: HttpRequest, rows: QuerySet[ApiToken]) -> None:
        revoked = list(rows.filter(revoked_at=None))
        for token in revoked:
            tokens.revoke(token)
        names = [(token.pk, str(token)) for token in revoked]
        audit.record(request.user, ApiToken, "revoked", names, filter_in_words(request))

    revoke.allowed_permissions = ("change",)  # type: ignore[attr-defined]

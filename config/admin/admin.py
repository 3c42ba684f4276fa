"""The admin of users, groups and beat's schedules, in the style of unfold."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django_celery_beat import admin as beat
from django_celery_beat import models
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from tailrace.config.admin.views import limited, without_style
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.web.accounts.deletion import DeletionRefused, request_deletion
from tailrace.web.pages.accounts.sign_in import sign_in_to_admin
from tailrace.web.pages.confirmation import confirmed

admin.site.empty_value_display = "–"
# The admin uses the site's own pages for signing in and changing passwords.
_site: Any = admin.site
_site.login = sign_in_to_admin
_site.admin_view = limited(_site.admin_view)
_site.each_context = without_style(_site.each_context)
_site.password_change = lambda request, extra_context=None: redirect("password_change")
SCHEDULES = (
    models.IntervalSchedule, models.CrontabSchedule, models.SolarSchedule, models.ClockedSchedule,
)  # fmt: skip
admin.site.unregister((User, Group, models.PeriodicTask, *SCHEDULES))


@admin.register(User)
class TailraceUserAdmin(UserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    @method_decorator(confirmed)
    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """Change a user's password, after the operator has entered their own password."""
        response: HttpResponse = super().user_change_password(request, id, form_url)
        return response

    # Deleting only the row would leave data that apps store outside of the database, such as
    # pictures. So a job deletes the account.

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        try:
            request_deletion(obj)
        except DeletionRefused as error:
            self.message_user(request, f"{error}.", messages.ERROR)
        else:
            text = f"{obj} can no longer sign in; a job deletes the account and its data."
            self.message_user(request, text)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            self.delete_model(request, user)

    def get_deleted_objects(self, objs: Iterable[User], request: HttpRequest) -> Any:
        """Return only the users to delete. Each app deletes its data of these users later."""
        names = [str(user) for user in objs]
        return names, {"users": len(names)}, set(), []


@admin.register(Group)
class TailraceGroupAdmin(GroupAdmin, ModelAdmin):
    pass


class _TaskSelect(UnfoldAdminSelectWidget, beat.TaskSelectWidget):
    pass


class _PeriodicTaskForm(beat.PeriodicTaskForm):
    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = _TaskSelect()


@admin.register(models.PeriodicTask)
class PeriodicTaskAdmin(beat.PeriodicTaskAdmin, ModelAdmin):
    form = _PeriodicTaskForm
    change_form_template = "admin/change_form.html"  # beat's own template has an inline script
    date_hierarchy = None


@admin.register(models.IntervalSchedule, models.SolarSchedule)
class ScheduleAdmin(ModelAdmin):
    pass


@admin.register(models.CrontabSchedule)
class CrontabScheduleAdmin(beat.CrontabScheduleAdmin, ModelAdmin):
    pass


@admin.register(models.ClockedSchedule)
class ClockedScheduleAdmin(beat.ClockedScheduleAdmin, ModelAdmin):
    pass

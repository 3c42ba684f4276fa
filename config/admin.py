"""The admin of users, groups and beat's schedules, with the looks of unfold."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django_celery_beat import admin as beat
from django_celery_beat import models
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

MODELS_OF_PACKAGES = (
    User,
    Group,
    models.PeriodicTask,
    models.IntervalSchedule,
    models.CrontabSchedule,
    models.SolarSchedule,
    models.ClockedSchedule,
)
admin.site.empty_value_display = "–"
for _model in MODELS_OF_PACKAGES:
    admin.site.unregister(_model)


@admin.register(User)
class TailraceUserAdmin(UserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


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
    date_hierarchy = None


@admin.register(models.IntervalSchedule)
class IntervalScheduleAdmin(ModelAdmin):
    pass


@admin.register(models.CrontabSchedule)
class CrontabScheduleAdmin(beat.CrontabScheduleAdmin, ModelAdmin):
    pass


@admin.register(models.SolarSchedule)
class SolarScheduleAdmin(ModelAdmin):
    pass


@admin.register(models.ClockedSchedule)
class ClockedScheduleAdmin(beat.ClockedScheduleAdmin, ModelAdmin):
    pass

"""The URLs of the timeline pages."""

from django.urls import path

from tailrace.domains.timeline.pages import days, devices, imports

app_name = "timeline"
urlpatterns = [
    path("timeline/", days.days, name="days"),
    path("timeline/cells", days.month_cells, name="month_cells"),
    path("timeline/find", days.find_day, name="find_day"),
    path("timeline/days/<str:day>", days.day, name="day"),
    path("timeline/days/<str:day>/track", days.day_track, name="day_track"),
    path("timeline/devices", devices.devices, name="devices"),
    path("timeline/devices/<int:id>", devices.device, name="device"),
    path("timeline/devices/<int:id>/merge", devices.merge, name="merge_device"),
    path("timeline/devices/<int:id>/delete", devices.delete, name="delete_device"),
    path("timeline/imports", imports.imports, name="imports"),
    path("timeline/imports/list", imports.imports_list, name="imports_list"),
    path("timeline/imports/<int:id>", imports.one_import, name="import"),
    path("timeline/imports/<int:id>/part", imports.import_part, name="import_part"),
    path("timeline/imports/<int:id>/details", imports.import_details, name="import_details"),
    path("timeline/imports/<int:id>/track", imports.import_track, name="import_track"),
    path("timeline/imports/<int:id>/undo", imports.undo, name="undo"),
    path("timeline/imports/<int:id>/<str:action>", imports.decide, name="decide"),
]

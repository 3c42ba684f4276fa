"""The domain's pages."""

from django.urls import path

from tailrace.domains.protection.pages import (
    exposures,
    overview,
    passwords,
    properties,
    removals,
    reports,
    voices,
    watchlist,
)

app_name = "protection"
urlpatterns = [
    path("protection/", overview.overview, name="overview"),
    path("protection/scan", overview.scan, name="scan"),
    path("protection/watchlist", watchlist.watchlist, name="watchlist"),
    path("protection/watchlist/<int:id>/<str:action>", watchlist.change_item, name="change_item"),
    path("protection/exposures", exposures.exposures, name="exposures"),
    path("protection/exposures/move", exposures.move, name="move_exposures"),
    path("protection/passwords", passwords.passwords, name="passwords"),
    path("protection/reports", reports.reports, name="reports"),
    path("protection/reports/list", reports.reports_list, name="reports_list"),
    path("protection/reports/<int:id>/file", reports.download, name="report_file"),
    path("protection/removals", removals.removals, name="removals"),
    path("protection/removals/<int:id>", removals.removal, name="removal"),
    path("protection/removals/<int:id>/<str:action>", removals.decide, name="removal_decide"),
    path("protection/properties", properties.properties, name="properties"),
    path("protection/properties/<int:id>", properties.one_property, name="property"),
    path(
        "protection/properties/<int:id>/remove", properties.remove_property, name="remove_property"
    ),
    path("protection/voices", voices.voices, name="voices"),
    path("protection/voices/recordings", voices.recordings_list, name="recordings_list"),
    path("protection/voices/<str:kind>/<int:id>/file", voices.download, name="voice_file"),
    path("protection/voices/<str:kind>/<int:id>/delete", voices.delete, name="delete_voice"),
]

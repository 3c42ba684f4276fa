"""The domain's pages."""

from django.urls import path

from domains.protection.pages import exposures, overview, scan, watchlist

app_name = "protection"
urlpatterns = [
    path("protection/", overview.overview, name="overview"),
    path("protection/scan", scan.scan, name="scan"),
    path("protection/watchlist", watchlist.watchlist, name="watchlist"),
    path("protection/watchlist/<int:id>/<str:action>", watchlist.change_item, name="change_item"),
    path("protection/exposures", exposures.exposures, name="exposures"),
    path("protection/exposures/move", exposures.move, name="move_exposures"),
]

"""The links to photos in the page menu and in the admin's sidebar."""

from tailrace.web.pages.map_layers import MapLayer
from tailrace.web.pages.menu import AdminLink, AdminSection, PageLink

PAGE_LINKS = [PageLink("Photos", "photos:gatherings")]
MAP_LAYERS = [MapLayer("photos:pins")]
ADMIN_MENU = AdminSection(
    "Photos",
    [
        AdminLink("Photos", "photo_camera", "tailrace_photos.photo"),
        AdminLink("Gatherings", "groups", "tailrace_photos.gathering"),
    ],
)

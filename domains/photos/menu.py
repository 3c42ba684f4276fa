"""The links to photos in the page menu and in the admin's sidebar."""

from web.menu import AdminLink, AdminSection, PageLink

PAGE_LINKS = [PageLink("Photos", "photos:gatherings")]
ADMIN_MENU = AdminSection(
    "Photos",
    [
        AdminLink("Photos", "photo_camera", "photos.photo"),
        AdminLink("Gatherings", "groups", "photos.gathering"),
    ],
)

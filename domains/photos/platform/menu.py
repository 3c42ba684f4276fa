"""The links to photos in the page menu and in the admin's sidebar."""

from tailrace.web.pages.menu import AdminLink, AdminSection, PageLink

PAGE_LINKS = [PageLink("Photos", "photos:gatherings")]
ADMIN_MENU = AdminSection(
    "Photos",
    [
        AdminLink("Photos", "photo_camera", "tailrace_photos.photo"),
        AdminLink("Gatherings", "groups", "tailrace_photos.gathering"),
    ],
)

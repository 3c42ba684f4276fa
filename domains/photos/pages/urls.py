"""The URLs of the photo pages."""

from django.urls import path

from tailrace.domains.photos.pages import delete, gatherings, my_photos, pins, upload

app_name = "photos"
urlpatterns = [
    path("photos/", gatherings.gatherings, name="gatherings"),
    path("photos/list", gatherings.gatherings_list, name="list"),
    path("photos/gatherings/<int:id>", gatherings.gathering, name="gathering"),
    path("photos/gatherings/<int:id>/photos", gatherings.gathering_photos, name="gathering_photos"),
    path("photos/mine", my_photos.mine, name="mine"),
    path("photos/mine/pins", pins.pins, name="pins"),
    path("photos/mine/delete", delete.delete, name="delete"),
    path("photos/mine/list", my_photos.mine_list, name="mine_list"),
    path("photos/upload", upload.upload, name="upload"),
    path("photos/<int:id>/image", my_photos.image, name="image"),
]

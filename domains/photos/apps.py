from django.apps import AppConfig


class PhotosConfig(AppConfig):
    """photos: photos of one place and time become gatherings."""

    name = "domains.photos"
    label = "photos"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from subscriptions import navigation, tokens

        navigation.offer("Photos", "photos:gatherings")
        tokens.offer("photos:read", "see photos and gatherings")
        tokens.offer("photos:write", "upload photos")

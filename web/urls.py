"""URLs of the API, of signing in and out, and the start of a person's pages."""

from django.urls import include, path, re_path

from web.api.site import api
from web.api.views import api_pattern, api_view, unknown_address
from web.pages.sign_in import SignIn, SignOut, start

api_patterns = [
    *(api_pattern(pattern) for pattern in api.urls[0]),
    re_path(r"^.*$", api_view(unknown_address), name="nothing"),
]
urlpatterns = [
    path("api/", include((api_patterns, "api"))),
    path("accounts/login/", SignIn.as_view(), name="login"),
    path("accounts/logout/", SignOut.as_view(), name="logout"),
    path("me/", start, name="me"),
]

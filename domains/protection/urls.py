"""The domain's pages."""

from typing import Any

app_name = "protection"
urlpatterns: list[Any] = []

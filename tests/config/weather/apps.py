from django.apps import AppConfig


class WeatherConfig(AppConfig):
    """weather: what stations measure."""

    name = "tailrace.domains.weather"
    label = "weather"

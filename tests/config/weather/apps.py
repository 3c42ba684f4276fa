from django.apps import AppConfig


class WeatherConfig(AppConfig):
    """weather: what stations measure."""

    name = "domains.weather"
    label = "weather"

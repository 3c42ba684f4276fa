from pydantic import Field

from tailrace.environment.settings import AppSettings


class WeatherSettings(AppSettings):
    prefixes = ("WEATHER_",)

    WEATHER_FROST_DEGREES: int = Field(0, ge=-50)
    """degrees below which it is frost"""

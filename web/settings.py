from pydantic import Field, PositiveInt

from environment.settings import AppSettings


class WebSettings(AppSettings):
    """What one client of the API may ask for."""

    API_RATE: float = Field(10.0, ge=0.01)
    """requests per second that a token or a user may make over a long time"""
    API_BURST: PositiveInt = 100
    """requests that may come at once"""
    API_MAX_BODY_BYTES: int = Field(1_048_576, ge=1024)
    """bytes that the body of a request may have"""
    API_MAX_BATCH: PositiveInt = 100
    """events that one request may contain, at most"""

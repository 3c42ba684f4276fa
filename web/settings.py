from pydantic import Field, PositiveInt

from tailrace.environment.settings import AppSettings


class WebSettings(AppSettings):
    """What one client of the API may ask for, and how many passwords are checked at once."""

    PASSWORD_HASHES_AT_ONCE: PositiveInt = 2
    """passwords that one web process hashes at once; more logins get 503 and may try again"""
    API_RATE: float = Field(10.0, ge=0.01)
    """requests per second that a token may make over a long time; costly ones count more"""
    API_BURST: PositiveInt = 100
    """requests of a token that may come at once"""
    USER_RATE: float = Field(20.0, ge=0.01)
    """requests per second that a user may make, with all tokens and on all pages together; as many
    again in the admin; and as many from one address to feeds"""
    USER_BURST: PositiveInt = 200
    """requests of a user that may come at once"""
    API_MAX_BODY_BYTES: int = Field(1_048_576, ge=1024)
    """bytes that the body of a request may have"""
    API_MAX_BATCH: PositiveInt = 100
    """events that one request may contain, at most"""

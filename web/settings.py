from pydantic import Field, PositiveInt

from tailrace.environment.settings import AppSettings


class WebSettings(AppSettings):
    """Rate limits and size limits of the API, and the limit of concurrent password checks."""

    PASSWORD_HASHES_AT_ONCE: PositiveInt = 2
    """passwords that one web process hashes at once; further logins are answered with 503"""
    API_RATE: float = Field(10.0, ge=0.01)
    """average requests per second with one token; costly requests count as several"""
    API_BURST: PositiveInt = 100
    """requests with one token that may come at once"""
    USER_RATE: float = Field(20.0, ge=0.01)
    """average requests per second of one user, with all tokens and pages together; the admin, and
    by IP address feeds, sign-in pages, unsubscribe links and invalid tokens, have separate limits
    of the same size"""
    USER_BURST: PositiveInt = 200
    """requests of a user that may come at once"""
    API_MAX_BODY_BYTES: int = Field(1_048_576, ge=1024)
    """maximum size of the body of a request to the API, in bytes; files have their own"""

from tailrace.environment.settings import AppSettings


class PigeonSettings(AppSettings):
    """Where the pigeons arrive."""

    PIGEON_LOFT: str = "/dev/null"

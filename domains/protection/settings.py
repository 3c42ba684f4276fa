from environment.settings import AppSettings


class ProtectionSettings(AppSettings):
    """Scans for subscribers of a plan, and the providers that they ask."""

    prefixes = ("PROTECTION_",)

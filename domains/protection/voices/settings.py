from pydantic import Field

from tailrace.environment.settings import AppSettings


class VoicesSettings(AppSettings):
    """Comparing voices."""

    prefixes = ("PROTECTION_VOICE_", "PROTECTION_MAX_RECORDINGS_")

    PROTECTION_VOICE_MODEL: str = ""
    """ONNX file of a speaker-embedding model, see docs/protection.md; empty: voices are compared by
    their spectra alone"""
    PROTECTION_VOICE_THRESHOLD: float = Field(0.5, ge=0, lt=1)
    """cosine similarity from which the model's verdict is a match"""
    PROTECTION_VOICE_SECONDS: int = Field(20, ge=1, le=600)
    """seconds that comparing one recording may take"""
    PROTECTION_MAX_RECORDINGS_PER_USER: int = Field(200, ge=1, le=10_000)
    """recordings that an account may have"""

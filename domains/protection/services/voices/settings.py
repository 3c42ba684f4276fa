from pydantic import Field

from tailrace.environment.settings import AppSettings


class VoicesSettings(AppSettings):
    """The comparison of voices."""

    prefixes = ("PROTECTION_VOICE_", "PROTECTION_MAX_RECORDINGS_")

    PROTECTION_VOICE_MODEL: str = ""
    """ONNX file of a speaker-embedding model, see docs/domains/protection.md; empty: voices are
    compared only by their spectra"""
    PROTECTION_VOICE_THRESHOLD: float = Field(0.5, ge=0, lt=1)
    """minimum cosine similarity for a match, with a model"""
    PROTECTION_VOICE_SECONDS: int = Field(20, ge=1, le=600)
    """time limit in seconds for comparing one recording"""
    PROTECTION_MAX_RECORDINGS_PER_USER: int = Field(200, ge=1, le=10_000)
    """maximum number of recordings of an account"""

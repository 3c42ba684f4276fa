"""Voices: recordings are compared with those that a person has enrolled."""

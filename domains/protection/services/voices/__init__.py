"""Voices: comparing recordings with the enrolled voices of a person."""

"""Alerts: raising them, and their texts."""

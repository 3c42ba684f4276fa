"""Alerts: raise them, and what they mean in words."""

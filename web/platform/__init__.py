"""Modules of the web that only the platform imports: access keys, personal data, commands."""

"""Uploads of users: limits, files, errors, and how the API and the pages report these errors."""

"""System checks, by name in `manage.py check`."""

"""Celery's own integration suite, run with our task class: `make celery-suite`. It is downloaded
when it runs."""

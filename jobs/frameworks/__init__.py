"""Tasks of other frameworks, Celery's and Django's, that run as jobs."""

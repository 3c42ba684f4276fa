"""Tailrace: a job platform on Django, Celery, Redis and PostgreSQL.

Its packages are the folders at the top of the repository, linked here: `tailrace.jobs` is jobs/.
"""

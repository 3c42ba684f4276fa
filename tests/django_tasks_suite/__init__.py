"""The test suites of Django's task framework and of django-tasks-db, run against our backend:
`make django-tasks-suite`. They are downloaded when it runs."""

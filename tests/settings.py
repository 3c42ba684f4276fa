"""The project's own settings, and an app with event types and handlers for the tests."""

from config import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.sandbox"]

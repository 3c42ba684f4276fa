"""The project's settings and the app that shortens the leases."""

from config import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.chaos.apps.ChaosConfig"]

"""The project's settings, with handlers and addresses of the run's own."""

from config import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.chaos.apps.ChaosConfig"]
ROOT_URLCONF = "tests.chaos.urls"

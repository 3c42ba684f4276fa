"""The project's settings, with the handlers and addresses of the run."""

from tailrace.config import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.chaos.apps.ChaosConfig"]
ROOT_URLCONF = "tests.chaos.urls"

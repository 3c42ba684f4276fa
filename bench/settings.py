"""The project's settings as they ship, and the app whose handlers are measured."""

from tailrace.config import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "bench.app"]

"""The settings of a site that has installed the app beside those of the tests."""

from tailrace.environment.loading import Environment, settings_classes
from tests import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
globals().update(Environment(settings_classes(["pigeon"])).values)
INSTALLED_APPS = [*settings.INSTALLED_APPS, "pigeon"]

"""The settings of a worker that knows the event types of the sample domain."""

from tests import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.subscriptions.sample_app"]

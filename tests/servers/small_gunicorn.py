"""gunicorn's settings with SPACE bytes for bodies, and without the apps in LEFT_OUT."""

import os

from tailrace.config import installed_apps

for app in filter(None, os.environ.get("LEFT_OUT", "").split(",")):
    installed_apps.APPS.remove(app)

from tailrace.config.servers import worker  # noqa: E402
from tailrace.config.servers.gunicorn import *  # noqa: E402, F403

worker.MAX_SPOOLED = int(os.environ.get("SPACE", worker.MAX_SPOOLED))

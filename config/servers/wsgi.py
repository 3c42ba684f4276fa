"""WSGI entry point, for servers such as gunicorn."""

import os
from importlib import import_module

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tailrace.config.settings")

from tailrace.config.startup import boot

boot.start()
boot.limit_requests()

from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
import_module("tailrace.config.urls")  # load all pages before the first request

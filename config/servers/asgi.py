"""ASGI entry point, for servers such as uvicorn."""

import os
from importlib import import_module

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tailrace.config.settings")

from tailrace.config.startup import boot

boot.start()
boot.check_server()
boot.limit_requests()

from django.core.asgi import get_asgi_application

application = get_asgi_application()
import_module("tailrace.config.urls")  # load all pages before the first request

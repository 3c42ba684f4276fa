"""The settings of bench.core_host, with results of Celery in the broker's Redis."""

from bench.core_host import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
CELERY_RESULT_BACKEND = settings.CELERY_BROKER_URL
CELERY_TASK_IGNORE_RESULT = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True

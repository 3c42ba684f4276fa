from django.conf import settings

from tailrace.environment.processes import Process

PROCESSES = [
    Process(
        "inlet",
        "exec python -m tailrace photos_inlet",
        runs=lambda: bool(settings.PHOTOS_KAFKA_INLET_TOPIC),
    ),
]

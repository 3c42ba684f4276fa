from tailrace.environment.processes import Process

PROCESSES = [Process("station", "exec python manage.py read_station")]

from tailrace.environment.processes import Process

PROCESSES = [Process("station", "exec python -m tailrace read_station")]

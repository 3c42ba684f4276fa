"""Celery on Redis: early acks, no results, no state. publish N | prefork | gevent IN_FLIGHT

prefork: one worker with two processes. gevent: two workers of one process each.
"""

import os
import subprocess
import sys

from celery import Celery

from bench.sides.waiting.client import call

app = Celery("bench_waiting", broker=os.environ.get("BROKER_URL"))
app.conf.update(
    task_ignore_result=True,
    worker_send_task_events=False,
    task_send_sent_event=False,
    broker_connection_retry_on_startup=True,
)
WORKER = "-m celery -A bench.sides.waiting.celery_side worker -l WARNING --without-gossip".split()


@app.task(name="bench.wait")
def wait(number: int) -> None:
    """One call."""
    call(number)


if __name__ == "__main__":
    words = [sys.executable, *WORKER, "--without-mingle"]
    if sys.argv[1] == "publish":
        for number in range(int(sys.argv[2])):
            wait.delay(number)
    elif sys.argv[1] == "prefork":
        os.execv(sys.executable, [*words, "-c", os.environ["BENCH_PROCESSES"]])
    else:
        words += ["-P", "gevent", "-c", sys.argv[2]]
        for number in range(1, int(os.environ["BENCH_PROCESSES"])):
            subprocess.Popen([*words, "-n", f"gevent{number}@%h"])
        os.execv(sys.executable, words)

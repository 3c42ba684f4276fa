"""Run a command of `make run`: `python -m tailrace.config.devserver.restarter MARK SECONDS COMMAND`

The command is restarted when the file MARK is touched, unless MARK is empty. It ends when the
parent of this process has ended. The command gets SIGTERM, so that workers finish their jobs or
hand them back, and is killed after SECONDS.
"""

import os
import signal
import subprocess
import sys
import time

LOOK_SECONDS = 0.2


class Restarter:
    """`run` must be called in a process group of its own."""

    def __init__(self, mark: str, stop_seconds: float, command: str) -> None:
        self.mark, self.stop_seconds, self.command = mark, stop_seconds, command
        self.parent = os.getppid()
        self.ending = False
        self.restarted = False

    def run(self) -> int:
        """Run until the command ends by itself, this process is stopped, or its parent has ended;
        return the command's status. If a restarted command ends, wait for the next change of the
        code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            # The command gets the signal, too: it is in the same process group.
            signal.signal(number, self._end)
        touched = self._touched()
        child = self._start()
        waits = False
        while True:
            status = child.poll()
            if status is not None and (self.ending or not self.restarted):
                return status
            if status is not None and not waits:
                waits = True
                print(f"ended with status {status}: restarts at the next change", flush=True)
            if os.getppid() != self.parent:
                self._end_group(child)
            if (now := self._touched()) != touched and not self.ending:
                touched = now
                self._stop(child)
                if not self.ending:
                    self.restarted, waits = True, False
                    child = self._start()
            time.sleep(LOOK_SECONDS)

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command, shell=True)  # noqa: S602 - a command of the Procfile

    def _stop(self, child: subprocess.Popen[bytes]) -> None:
        child.terminate()
        self._wait(child)
        if child.poll() is None:
            child.kill()
            child.wait()

    def _end_group(self, child: subprocess.Popen[bytes]) -> None:
        """End the command, the processes that it started, and this process. No process is left that
        could restart or kill them."""
        os.killpg(0, signal.SIGTERM)
        self._wait(child)
        os.killpg(0, signal.SIGKILL)

    def _wait(self, child: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + self.stop_seconds
        while child.poll() is None and time.monotonic() < until:
            time.sleep(LOOK_SECONDS / 4)

    def _end(self, *args: object) -> None:
        self.ending = True

    def _touched(self) -> int:
        try:
            return os.stat(self.mark).st_mtime_ns
        except OSError:
            return 0


if __name__ == "__main__":
    _, mark, seconds, command = sys.argv
    status = Restarter(mark, float(seconds), command).run()
    sys.exit(status if status >= 0 else 128 - status)

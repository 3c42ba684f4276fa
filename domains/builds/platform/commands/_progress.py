"""Show progress: as a bar on a terminal, or as a line every 30 seconds in a file."""

import time
from typing import Any

WIDTH = 30


class ProgressBar:
    """Shows how many items are done. `out` is a command's stdout."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._on_terminal = bool(out.isatty())
        self._started = self._drawn_at = time.monotonic()
        self._state: tuple[int, int, str] | None = None
        self._length = 0

    def show(self, done: int, total: int, note: str = "") -> None:
        """Set the progress, and draw it unless it was drawn a short time ago."""
        self._state = (done, total, note)
        if time.monotonic() - self._drawn_at >= (0.2 if self._on_terminal else 30):
            self._draw(*self._state)

    def end(self) -> None:
        """Draw the last progress, and end the line."""
        if self._state is not None:
            self._draw(*self._state)
            if self._on_terminal:
                self._out.write("")

    def _draw(self, done: int, total: int, note: str) -> None:
        self._drawn_at = time.monotonic()
        share = done / total if total else 1.0
        text = f"{done} of {total} {note}, {self._remaining_time(done, total)}"
        if self._on_terminal:
            bar = f"[{'#' * int(share * WIDTH):<{WIDTH}}] {text}"
            self._out.write("\r" + bar.ljust(self._length), ending="")
            self._out.flush()
            self._length = len(bar)
        else:
            self._out.write(f"{share:4.0%}  {text}")

    def _remaining_time(self, done: int, total: int) -> str:
        """Return the estimated remaining time as text, or `done`."""
        if done == total:
            return "done"
        seconds = (self._drawn_at - self._started) / done * (total - done) if done else 0.0
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"about {hours} h {minutes} min left" if hours else f"about {minutes} min left"

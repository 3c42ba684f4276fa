"""Move finished jobs to the history, and delete rows past their retention."""

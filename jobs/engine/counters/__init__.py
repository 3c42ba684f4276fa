"""Count jobs and their times, for /metrics and the overview."""

"""What processes that run handlers use: states, payloads, job logs, error reports, the shutdown."""

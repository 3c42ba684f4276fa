"""What processes that run handlers use: payloads, job logs, error reports, the shutdown."""

"""Wake queues: their state, the wake-up after a commit, and jobs that wait for another job."""

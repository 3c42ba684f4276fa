"""What happens each second: rescue jobs, run schedules, wake queues."""

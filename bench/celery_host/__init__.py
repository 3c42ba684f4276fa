"""A project with a Celery app, whose tasks run in the way that BENCH_TASKS names: `jobs`,
`careful` (acks_late and a status row per task) or `stateless` Celery."""

"""A call of a task as data: its message, and the payload of its job."""

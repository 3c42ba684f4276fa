"""The sources of events: the notification log of a backend, and the messages of a bus."""

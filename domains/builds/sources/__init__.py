"""Where events come from: the notification log of a backend, and the messages of a bus."""

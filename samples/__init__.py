"""What `make run` shows a newcomer: a sample server for each source of a domain, and sample data.

Only the development server starts them, and tests use the servers. Nothing else imports this room.
"""

if __name__ != "tailrace.samples":
    raise ImportError("this package is `tailrace.samples`: import it by that name")

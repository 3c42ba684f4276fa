"""A small server with a build service's notification log protocol, for tests and for trying out
Tailrace. It needs only the standard library and no database."""

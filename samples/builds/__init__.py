"""A small server with a build service's notification log protocol, and the users of its projects.
The server needs only the standard library and no database."""

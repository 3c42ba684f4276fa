"""A sample backend: a small server that speaks the notification log's protocol, with a life of
its own. It needs no database and nothing but the standard library."""

"""The REST API: who hears what, what they were told, and events in and out.

One file per resource. `site` puts them together, `gate` lets in, `problems` says no.
"""

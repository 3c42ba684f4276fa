"""The file formats of location histories, one in a file;
`tailrace.domains.timeline.imports.reading` finds them.

A new format is a new module here with a subclass of `Format`.
"""

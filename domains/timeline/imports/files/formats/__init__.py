"""The file formats of location histories, one module each.

To add a format, add a module with a subclass of `Format`: `timeline.imports.reading` discovers it.
"""

"""Imported files, in the storage `timeline`: files under TIMELINE_FOLDER, unless Django's STORAGES
configure another storage."""

from tailrace.web.uploads.stored_files import StoredFiles

files = StoredFiles("timeline", "imports")

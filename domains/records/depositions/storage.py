"""Deposited files, in the storage `records`: files under RECORDS_FOLDER, unless Django's STORAGES
configure another storage."""

from tailrace.web.uploads.stored_files import StoredFiles

files = StoredFiles("records", "depositions")

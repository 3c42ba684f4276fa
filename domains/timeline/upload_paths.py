from tailrace.web.bodies import UploadPaths

HISTORIES = UploadPaths("/api/imports", "/timeline/imports", setting="IMPORT_MAX_MEGABYTES")

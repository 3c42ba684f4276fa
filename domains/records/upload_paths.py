from tailrace.web.bodies import UploadPaths

DEPOSITS = UploadPaths(
    "/api/records/depositions",
    "/records/depositions/new",
    setting="RECORDS_MAX_MEGABYTES",
    form_bytes=300_000,
)

"""The API of depositions, records, sources and the search."""

from tailrace.domains.records.api import depositions, records, search, sources

routers = {
    "/records/depositions": depositions.router,
    "/records/search": search.router,
    "/records/sources": sources.router,
    "/records": records.router,
}
scopes = {
    "records:read": "read records and your depositions",
    "records:deposit": "deposit, correct and withdraw records",
    "records:curate": "approve, reject and withdraw depositions, with the permissions of the user",
    "records:read_sources": "see the sources of records, with the permissions of the user",
    "records:write_sources": "add, change, try and pull sources, with the permissions of the user",
}

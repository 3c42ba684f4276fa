"""The URLs of the pages of records."""

from django.urls import path

from tailrace.domains.records.pages import depositions, indexes, records, search, sources

app_name = "records"
urlpatterns = [
    path("records/", search.search, name="search"),
    path("records/depositions", depositions.depositions, name="depositions"),
    path("records/depositions/new", depositions.deposit, name="deposit"),
    path("records/depositions/<int:id>", depositions.deposition, name="deposition"),
    path(
        "records/depositions/<int:id>/chain", depositions.deposition_chain, name="deposition_chain"
    ),
    path("records/depositions/<int:id>/<str:action>", depositions.decide, name="decide"),
    path(
        "records/depositions/<int:id>/files/<int:file>",
        depositions.deposition_file,
        name="deposition_file",
    ),
    path("records/sources", sources.sources, name="sources"),
    path("records/sources/new", sources.new_source, name="new_source"),
    path("records/sources/<int:id>", sources.source, name="source"),
    path("records/sources/<int:id>/now", sources.source_now, name="source_now"),
    path("records/sources/<int:id>/edit", sources.edit_source, name="edit_source"),
    path("records/sources/<int:id>/<str:action>", sources.change_source, name="change_source"),
    path("records/indexes", indexes.indexes, name="indexes"),
    path("records/indexes/<str:name>/<str:action>", indexes.change_index, name="change_index"),
    path("records/<int:id>", records.record, name="record"),
    path("records/<int:id>/withdraw", records.withdraw, name="withdraw"),
]

"""The steps of an import, each of which is a job: stage, promote, enrich, undo."""

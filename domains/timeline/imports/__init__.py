"""Imports of files: receive, stage, promote to the timeline, enrich, undo."""

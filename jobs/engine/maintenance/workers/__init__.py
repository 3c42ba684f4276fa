"""The processes that do upkeep: their turns, heartbeats and versions of the code."""

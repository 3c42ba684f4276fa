"""The start of a process."""

import gc

LOADED = 100_000
"""Objects, at least: all apps are loaded."""


def test_what_was_loaded_is_never_looked_at_again_for_garbage() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > LOADED

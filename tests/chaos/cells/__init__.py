"""The faults. Each takes a running deployment and returns when its last fault is over."""

from tests.chaos.cells import processes, shutdowns, engines, clocks, contention, together, imports  # noqa: F401, I001
from tests.chaos.cells import flows  # noqa: F401
from tests.chaos.cells.base import CELLS, FaultUnavailable, Held, Site, of

__all__ = ["CELLS", "FaultUnavailable", "Held", "Site", "of"]

"""ids: names that nothing else bears, on any machine, made in order.

One random prefix per process and a counter: as unique as a random number for each, cheaper to make,
and neighbours in an index, so that inserting many touches few of its pages.
"""

import itertools
import os
import secrets

PREFIX_BYTES = 12


class _Names:
    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._prefix = secrets.token_hex(PREFIX_BYTES)
        self._numbers = itertools.count(1)

    def fresh(self) -> str:
        return f"{self._prefix}-{next(self._numbers):x}"


_names = _Names()
fresh = _names.fresh

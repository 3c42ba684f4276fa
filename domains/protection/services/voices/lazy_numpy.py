"""numpy, imported on first use: few processes compare voices, and it takes 25 MB."""

from importlib import import_module
from typing import Any


class _Numpy:
    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("numpy"), name)


np: Any = _Numpy()

"""Read tensors from a file in the safetensors format, which contains no code."""

import json
import mmap
from pathlib import Path
from typing import Any

import numpy as np

from tailrace.domains.records.search.embeddings.model import ModelUnusable

MOST_HEADER = 10_000_000
_TYPES = {"F32": "<f4", "F16": "<f2"}


def read_tensors(file: Path) -> dict[str, Any]:
    """Return the tensors by name, as float32 arrays. Raises ModelUnusable.

    Aligned float32 tensors are memory-mapped, so processes share them.
    """
    try:
        with file.open("rb") as content:
            data = mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(data[:8], "little")
        if size > MOST_HEADER:
            raise ValueError(f"its header would have {size:,} bytes")
        header = json.loads(data[8 : 8 + size])
        header.pop("__metadata__", None)
        body = memoryview(data)[8 + size :]
        return {name: _tensor(name, entry, body) for name, entry in header.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelUnusable(
            f"{file} cannot be read as safetensors: {str(error)[:200]}; copy it again"
        ) from None


def _tensor(name: str, entry: dict[str, Any], body: memoryview) -> Any:
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(body):
        raise ValueError(f"{name} ends at byte {end:,} of {len(body):,}: the file is cut off")
    if entry["dtype"] == "I64":  # positions of tokens, which are computed instead
        return None
    if entry["dtype"] not in _TYPES:
        raise ValueError(f"{name} has the type {entry['dtype']}; only F32 and F16 are supported")
    values = np.frombuffer(body[begin:end], dtype=_TYPES[entry["dtype"]])
    values = np.require(values, np.float32, "A")  # unaligned arrays are 50 times slower
    return values.reshape(entry["shape"])

"""Measure the memory of the import of a very large file, which the default run leaves out.

`python -m bench --only huge_import`: a Records.json of 2 GB, packed with gzip to take little
disk. The same thousands of records are repeated, which makes no difference to the memory.
"""

import gzip
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.domains import track_files
from bench.report import Row, Target
from bench.servers import Servers

TITLE = "Import of a very large file"
BYTES = 2_000_000_000
RECORDS = 20_000
"""In a piece that is repeated."""


def run(servers: Servers, short: bool) -> list[Row]:
    """Parse and stage it, as a job does."""
    env = servers.environment(servers.database("huge_import"), servers.broker())
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Records.json.gz"
        points, size = write(path, BYTES // 10 if short else BYTES)
        output = servers.run(
            env, "-m", "bench.domains.inside.imports", "ours", str(path), str(points)
        )
    servers.drop()
    result = json.loads(output)
    note = f"{size / 1e6:,.0f} MB of records unpacked; {result['rate']:,.0f} points/s"
    return [
        Row("huge_import", "peak memory", "Records.json", result["peak"], "MB", note, result),
        Row("huge_import", "added by the import", "Records.json", result["added"], "MB"),
    ]


def targets(rows: Sequence[Row]) -> list[Target]:
    """The requirement for a file of any size."""
    return [Target("peak memory of the process, MB", rows[0].value, 150, "less")]


def write(path: Path, size: int) -> tuple[int, int]:
    """Write a packed Records.json of about so many bytes; return its points and bytes."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "Records.json"
        track_files.records(plain, RECORDS)
        head, _, rest = plain.read_bytes().partition(b"[")
    piece = rest.rpartition(b"]")[0]
    packed = gzip.compress(b"," + piece, 6)
    times = max(1, size // len(piece))
    with path.open("wb") as file:
        file.write(gzip.compress(head + b"[" + piece))
        for _ in range(times - 1):
            file.write(packed)
        file.write(gzip.compress(b"]}\n"))
    return times * RECORDS, times * len(piece)

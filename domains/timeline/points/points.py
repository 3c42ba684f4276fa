"""The definition of a point.

    (recorded_at, lon, lat, altitude, accuracy, speed, course)

`recorded_at` is in microseconds since 1970 in UTC. `lon` and `lat` are in 1e-7 degrees (WGS 84), so
that a point that occurs in two files gets the same numbers. Altitude and accuracy are in metres,
speed is in metres per second, course in degrees; each is None if the file does not have it.

User, device, `recorded_at`, `lon` and `lat` identify a point. User and device belong to the import,
not to the point. Points are tuples, not objects, because there are millions of them.
"""

Point = tuple[int, int, int, float | None, float | None, float | None, float | None]

MAX_LON = 1_800_000_000
MAX_LAT = 900_000_000
SECOND = 1_000_000
EARLIEST = 631_152_000 * SECOND
"""1990-01-01. Earlier times come from clocks that are not set."""

NO_COORDINATES = "no coordinates"
OUT_OF_RANGE = "coordinates out of range"
NO_TIME = "no time"
TOO_EARLY = "time before 1990"
TOO_LATE = "time more than a day ahead"
UNPARSABLE = "unparsable value"


def fault(recorded_at: int, lon: int, lat: int, latest: int) -> str | None:
    """Return the reason to reject a point with these numbers, or None if it is valid. `latest` is
    the latest accepted time, in microseconds since 1970."""
    if not (-MAX_LON <= lon <= MAX_LON and -MAX_LAT <= lat <= MAX_LAT):
        return OUT_OF_RANGE
    if recorded_at < EARLIEST:
        return TOO_EARLY
    return TOO_LATE if recorded_at > latest else None

"""What a point is.

    (recorded_at, lon, lat, altitude, accuracy, speed, course)

`recorded_at` is in microseconds since 1970 in UTC; `lon` and `lat` are in 1e-7 degrees (WGS 84), so
that two files with one point give the same numbers. The other four are None where the file does not
have them: altitude and accuracy in metres, speed in metres per second, course in degrees.

A point is identified by its user, device, `recorded_at`, `lon` and `lat`. User and device belong to
the import, not to the point. Points are tuples, not objects: there are millions of them.
"""

Point = tuple[int, int, int, float | None, float | None, float | None, float | None]

MAX_LON = 1_800_000_000
MAX_LAT = 900_000_000
SECOND = 1_000_000
DAY = 86_400 * SECOND
EARLIEST = 631_152_000 * SECOND
"""1990-01-01. Before it nobody recorded where they were; it is where broken clocks begin."""

NO_COORDINATES = "no coordinates"
OUT_OF_RANGE = "coordinates out of range"
NO_TIME = "no time"
TOO_EARLY = "time before 1990"
TOO_LATE = "time more than a day ahead"
UNPARSABLE = "unparsable value"
REASONS = (NO_COORDINATES, OUT_OF_RANGE, NO_TIME, TOO_EARLY, TOO_LATE, UNPARSABLE)
"""Why a point is rejected."""


def fault(recorded_at: int, lon: int, lat: int, latest: int) -> str | None:
    """Return why a point of these numbers is rejected, or None if it is good. `latest` is a day
    after the time of the import, in microseconds since 1970."""
    if not (-MAX_LON <= lon <= MAX_LON and -MAX_LAT <= lat <= MAX_LAT):
        return OUT_OF_RANGE
    if recorded_at < EARLIEST:
        return TOO_EARLY
    return TOO_LATE if recorded_at > latest else None

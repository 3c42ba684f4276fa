"""The order of locks: first the device, then its imports, then its points by time and place.

    a request of the device    FOR NO KEY UPDATE   one after the other
    a chunk of a promotion     FOR KEY SHARE       beside requests of the device
    a chunk of an undo         FOR UPDATE          excludes both: it reads sources, then deletes

Each of them holds its locks for one chunk or request. A decision and the beginning of a promotion
take the lock of a request, so that none of them sees half of another.
"""

from tailrace.db.query import query
from tailrace.domains.timeline.models import Device


def lock_device_of(import_id: int) -> None:
    """Lock the device of the import against requests, decisions and promotions that begin."""
    devices = Device.objects.select_for_update(no_key=True, of=("self",))
    devices.filter(imports=import_id).first()


def lock_for_chunk(device_id: int, strength: str) -> bool:
    """Lock the device for one chunk: KEY SHARE or UPDATE; return whether the device exists."""
    sql = f"SELECT 1 FROM tailrace_timeline_device WHERE id = %(id)s FOR {strength}"
    return bool(query(sql, id=device_id))

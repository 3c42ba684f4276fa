from domains.timeline.models.device import Device
from domains.timeline.models.location_import import Import
from domains.timeline.models.place import Place
from domains.timeline.models.point import Point

__all__ = ["Device", "Import", "Place", "Point"]

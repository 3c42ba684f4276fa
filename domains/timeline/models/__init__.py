from tailrace.domains.timeline.models.device import Device
from tailrace.domains.timeline.models.location_import import Import
from tailrace.domains.timeline.models.place import Place
from tailrace.domains.timeline.models.point import Point
from tailrace.domains.timeline.models.point_source import PointSource

__all__ = ["Device", "Import", "Place", "Point", "PointSource"]

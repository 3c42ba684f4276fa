"""Files of points: received, staged, promoted to the timeline, undone."""

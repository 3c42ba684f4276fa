"""What the sweeper finds and repairs, one short statement each.

It clusters no photo itself: it enqueues `photos.cluster` again. Its cost depends on the photos that
wait and on the gatherings that are ACTIVE, not on the history.
"""

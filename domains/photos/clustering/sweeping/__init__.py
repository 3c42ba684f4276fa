"""The searches and repairs of the sweeper.

The sweeper clusters no photos itself: it enqueues `photos.cluster` again. Its cost depends on the
number of waiting photos and ACTIVE gatherings, not on the history.
"""

"""Photos without a location get it from their owner's timeline. The domains exchange only events.

    the timeline gets points, or a photo is uploaded
      ──► photos.places_requested: the times of these photos
      ──► timeline.places_known: where the owner was at these times (published by timeline)
      ──► photos.uploaded: the photo has a location, and can join a gathering

Only the owner may read the two events between. Their times and locations are erased once they are
processed.
"""

"""Photos without a place get one from their owner's timeline, by events alone.

    points come into the timeline, or the photo is uploaded
      ──► photos.places_requested: the times of these photos
      ──► timeline.places_known: where the owner was at these times (published by timeline)
      ──► photos.uploaded: the photo has a place, and joins a gathering

Both events are for the owner alone, and lose their times and places once they are answered.
"""

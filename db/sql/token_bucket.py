"""SQL of a token bucket: it fills at a rate, up to its capacity."""


def tokens_at(
    now: str, *, tokens: str, filled_at: str, capacity: str, rate: str = "%(rate)s"
) -> str:
    """Return SQL for the number of tokens at `now` in a bucket that had `tokens` at `filled_at`.
    `rate` is in tokens per second; by default it is the statement's parameter `rate`."""
    return f"""least({capacity},
      {tokens} + {rate} * greatest(extract(epoch FROM {now} - {filled_at}), 0)::float8)"""

"""SQL of a token bucket: it fills at a rate, and holds no more than its capacity."""


def tokens_at(
    now: str, *, tokens: str, filled_at: str, capacity: str, rate: str = "%(rate)s"
) -> str:
    """Return SQL for the tokens at `now` of a bucket that had `tokens` at `filled_at`.

    `rate` is tokens per second; without it, the statement takes it as a parameter of this name.
    """
    return f"""least({capacity},
      {tokens} + {rate} * greatest(extract(epoch FROM {now} - {filled_at}), 0)::float8)"""

"""Parts of SQL statements: arrays, conditions, token buckets."""

"""The largest tables: their rows, their size on disk and their last vacuum."""

from dataclasses import dataclass
from datetime import datetime

from tailrace.db.query import query

SHOWN = 40

# The partitions of a table count as one relation; live jobs are apart from the history of jobs. The
# sizes are read from the file system, and wait for a session that rewrites or truncates a table.
_RELATIONS = """
SELECT sum(each.total) OVER ()::bigint, count(*) OVER (), each.* FROM (
  SELECT CASE c.relname WHEN 'tailrace_jobs_live' THEN c.relname
           ELSE coalesce(pg_partition_root(c.oid), c.oid)::regclass::text END AS name,
    count(*) AS parts,
    sum(CASE WHEN c.reltuples < 0 THEN coalesce(s.n_live_tup, 0)
             ELSE c.reltuples::bigint END)::bigint AS rows,
    coalesce(sum(s.n_dead_tup), 0)::bigint AS dead,
    coalesce(sum(pg_table_size(c.oid)), 0)::bigint
      - coalesce(sum(pg_total_relation_size(nullif(c.reltoastrelid, 0))), 0)::bigint AS heap,
    coalesce(sum(pg_indexes_size(c.oid)), 0)::bigint AS indexes,
    coalesce(sum(pg_total_relation_size(nullif(c.reltoastrelid, 0))), 0)::bigint AS toast,
    coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS total,
    sum(s.n_tup_hot_upd)::float8 / nullif(sum(s.n_tup_upd), 0) AS hot,
    greatest(max(s.last_vacuum), max(s.last_autovacuum)) AS vacuumed_at
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = ANY(current_schemas(false))
  LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
  WHERE c.relkind IN ('r', 'm')
  GROUP BY 1
) each ORDER BY each.total DESC, each.name LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Relation:
    """The size of a table with all of its partitions, in bytes."""

    name: str
    parts: int
    """The number of its partitions; 1 if it has none."""
    rows: int
    """The planner's estimate."""
    dead: int
    """Dead rows that vacuum has not removed yet."""
    heap: int
    indexes: int
    toast: int
    """The table of its long values (TOAST), with its index."""
    total: int
    hot: float | None
    """The share of its updates that changed no index (HOT), since the statistics began."""
    vacuumed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Sizes:
    """The largest tables, and the number and the bytes of all tables."""

    relations: tuple[Relation, ...]
    tables: int
    total: int


def sizes(limit: int = SHOWN) -> Sizes:
    """Return the largest `limit` tables of this schema, the largest first."""
    rows = query(_RELATIONS, limit=limit)
    total, tables = rows[0][:2] if rows else (0, 0)
    return Sizes(tuple(Relation(*row[2:]) for row in rows), tables, total)

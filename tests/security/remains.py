"""Look for traces of deleted data: in every row of every table, and in every file of a folder."""

from pathlib import Path

from django.apps import apps
from django.db import connection


def rows_with(*traces: str) -> list[str]:
    """Return the tables that have a row in which one of the texts stands, as `table: row`."""
    rows = []
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            table = connection.ops.quote_name(model._meta.db_table)
            cursor.execute(
                f"SELECT t::text FROM {table} t WHERE t::text LIKE ANY(%s)",
                [[f"%{trace}%" for trace in traces]],
            )
            rows += [f"{table}: {row}" for (row,) in cursor.fetchall()]
    return rows


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]

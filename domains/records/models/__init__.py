"""The tables of records."""

from tailrace.domains.records.models.deposition import UNFINISHED, Deposition, DepositionFile
from tailrace.domains.records.models.embedding_index import EmbeddingIndex
from tailrace.domains.records.models.index_entries import KeywordEntry, VectorEntry
from tailrace.domains.records.models.record import Record
from tailrace.domains.records.models.source import Source

__all__ = [
    "UNFINISHED",
    "Deposition",
    "DepositionFile",
    "EmbeddingIndex",
    "KeywordEntry",
    "Record",
    "Source",
    "VectorEntry",
]

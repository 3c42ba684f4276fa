"""The tables of records."""

from domains.records.models.deposition import UNFINISHED, Deposition, DepositionFile
from domains.records.models.embedding_index import EmbeddingIndex
from domains.records.models.index_entries import KeywordEntry, VectorEntry
from domains.records.models.record import Record
from domains.records.models.source import Source

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

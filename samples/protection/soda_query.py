"""A parser and evaluator of SoQL, the query language of SODA, for the part that our client uses.

Like the real one it is strict: an unknown column, a comparison of a text with a number, or an
unclosed quote is an error.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

Row = Mapping[str, Any]
Condition = Callable[[Row], bool]
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?[0-9]+(?:\.[0-9]+)?)"
    r"|(?P<word>:?[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[=>(),]))"
)


class QueryError(Exception):
    """An error in the query: the code and the message of a 400 answer."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def malformed(message: str) -> QueryError:
    return QueryError("query.compiler.malformed", message)


class Where:
    """A condition that is called with a row. `numbers` are the columns with numbers."""

    def __init__(self, text: str, columns: frozenset[str], numbers: frozenset[str]) -> None:
        self.columns, self.numbers = columns, numbers
        self.tokens = self._tokens(text)
        self.at = 0
        self.holds = self._parse_or()
        if self.at < len(self.tokens):
            raise malformed(f"unexpected {self.tokens[self.at][1]!r}")

    def __call__(self, row: Row) -> bool:
        return self.holds(row)

    @staticmethod
    def _tokens(text: str) -> list[tuple[str, str]]:
        tokens, at = [], 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise malformed(f"could not parse at {text[at : at + 20]!r}")
            tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        return tokens

    def _peek(self) -> str:
        return self.tokens[self.at][1].upper() if self.at < len(self.tokens) else ""

    def _take(self, *expected: str) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise malformed("unexpected end of the query")
        kind, value = self.tokens[self.at]
        if expected and (kind == "text" or value.upper() not in expected):
            raise malformed(f"unexpected {value!r}")
        self.at += 1
        return kind, value

    def _parse_or(self) -> Condition:
        parts = [self._parse_and()]
        while self._peek() == "OR":
            self._take("OR")
            parts.append(self._parse_and())
        return lambda row: any(part(row) for part in parts)

    def _parse_and(self) -> Condition:
        parts = [self._parse_condition()]
        while self._peek() == "AND":
            self._take("AND")
            parts.append(self._parse_condition())
        return lambda row: all(part(row) for part in parts)

    def _parse_condition(self) -> Condition:
        if self._peek() == "(":
            self._take("(")
            inner = self._parse_or()
            self._take(")")
            return inner
        column = self._parse_column()
        operator = self._take("=", ">", "IN", "IS")[1].upper()
        if operator == "IS":
            self._take("NOT")
            self._take("NULL")
            return lambda row: row.get(column) is not None
        if operator == "IN":
            self._take("(")
            values = [self._parse_literal(column)]
            while self._take(",", ")")[1] == ",":
                values.append(self._parse_literal(column))
            return lambda row: row.get(column) in values
        value = self._parse_literal(column)
        return lambda row: row.get(column) is not None and _COMPARE[operator](row[column], value)

    def _parse_column(self) -> str:
        kind, name = self._take()
        if kind != "word":
            raise malformed(f"unexpected {name!r}")
        if name not in self.columns:
            raise QueryError("query.soql.no-such-column", f"No such column: {name}")
        return name

    def _parse_literal(self, column: str) -> Any:
        kind, text = self._take()
        wanted = "number" if column in self.numbers else "text"
        if kind != wanted:
            raise QueryError("query.soql.type-mismatch", f"{column} is not a {kind}: {text}")
        return float(text) if kind == "number" else text[1:-1].replace("''", "'")


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    ">": lambda left, right: left > right,
}

"""Notice when a source leads in a circle: when it gives a token that it has given before.

Brent's algorithm: one earlier token is remembered, a later one each time the distance to it has
doubled. So a circle of any length is noticed, and the state has one digest however long a list is.
"""

import hashlib

from pydantic import BaseModel

MAX_PAGES = 100_000
"""Of one list. A source that always has another page is endless."""


class EndlessList(Exception):
    """The source's list does not end."""


class TokenTrail(BaseModel):
    """What is remembered of the tokens of one list."""

    pages: int = 0
    remembered: str = ""
    steps: int = 0
    limit: int = 1

    def add(self, token: str) -> "TokenTrail":
        """Return the trail with the next token; EndlessList if the list is a circle, or has too
        many pages."""
        digest = hashlib.sha256(token.encode()).hexdigest()[:32]
        if digest == self.remembered:
            raise EndlessList(f"leads in a circle: it repeats the token {token[:80]!r}")
        if self.pages >= MAX_PAGES:
            raise EndlessList(f"has no end: more than {MAX_PAGES:,} pages")
        if self.steps + 1 < self.limit:
            step = {"steps": self.steps + 1}
            return self.model_copy(update={"pages": self.pages + 1, **step})
        return TokenTrail(
            pages=self.pages + 1, remembered=digest, steps=0, limit=max(2 * self.limit, 1)
        )

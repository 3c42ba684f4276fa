"""Detect lists without an end: sources that repeat a token.

Uses Brent's algorithm: one earlier token is remembered, and is replaced by the current token each
time the distance has doubled. So a cycle of any length is detected with the digest of one token.
"""

import hashlib

from pydantic import BaseModel

MAX_PAGES = 100_000
"""Maximum number of pages of a list."""


class EndlessList(Exception):
    """The list has no end: it repeats itself or has more than MAX_PAGES pages."""


class TokenTrail(BaseModel):
    pages: int = 0
    remembered: str = ""
    steps: int = 0
    limit: int = 1

    def add(self, token: str) -> "TokenTrail":
        """Return the trail after the next token. Raises EndlessList."""
        digest = hashlib.sha256(token.encode()).hexdigest()[:32]
        if digest == self.remembered:
            raise EndlessList(f"repeats itself: it sent the token {token[:80]!r} again")
        if self.pages >= MAX_PAGES:
            raise EndlessList(f"has no end: more than {MAX_PAGES:,} pages")
        if self.steps + 1 < self.limit:
            step = {"steps": self.steps + 1}
            return self.model_copy(update={"pages": self.pages + 1, **step})
        return TokenTrail(
            pages=self.pages + 1, remembered=digest, steps=0, limit=max(2 * self.limit, 1)
        )
